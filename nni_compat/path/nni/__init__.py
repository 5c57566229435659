"""Stands in for NNI in trial scripts: becomes the real nni where one is installed, and else Pitchpipe's alias."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_here = os.path.realpath(os.path.dirname(os.path.dirname(__file__)))
_others = [entry for entry in sys.path if os.path.realpath(entry or ".") != _here]
_spec = PathFinder.find_spec("nni", _others)
if _spec is None:
    try:
        from pitchpipe.nni_compat import activate
    except ModuleNotFoundError as error:
        message = f"import nni: neither nni nor pitchpipe is installed for {sys.executable}"
        raise ModuleNotFoundError(message, name=error.name) from error
    _spec = activate()

sys.modules["nni"] = _module = module_from_spec(_spec)
if _spec.loader is not None:
    _spec.loader.exec_module(_module)
