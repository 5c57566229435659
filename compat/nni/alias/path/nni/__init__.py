"""Stands in for NNI in trial scripts: becomes the real nni where one is installed, and else Pitchpipe's alias.

In a trial of Pitchpipe, the real one's functions for trials raise an error: they would wait for NNI's manager. Any
Python 3 that a trial command starts reads this: what is too new for 3.6 would be a syntax error in place of the advice.
"""
# ruff: noqa: I002

import os
import shlex
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_here = os.path.realpath(os.path.dirname(os.path.dirname(__file__)))
_others = [entry for entry in sys.path if os.path.realpath(entry or ".") != _here]
_spec = _real = PathFinder.find_spec("nni", _others)
if _spec is None:
    try:
        from pitchpipe.compat.nni.alias.finder import activate
    except ImportError as error:
        message = f"import nni: neither nni nor pitchpipe is installed for {sys.executable}"
        if sys.hexversion < 0x030B0000:
            older = "which is older than Python 3.11"
            message += f", {older}: let trial_command start a newer one, with pitchpipe installed"
        else:
            message += f"; in a checkout of Pitchpipe: {shlex.quote(sys.executable)} -m pip install ."
        raise ModuleNotFoundError(message, name=error.name) from error
    _spec = activate()

sys.modules["nni"] = _module = module_from_spec(_spec)
if _spec.loader is not None:
    _spec.loader.exec_module(_module)


def _refuse(*_arguments: object, **_options: object) -> None:
    message = f"NNI itself is installed in {_where}, and it gets no parameters from Pitchpipe"
    raise RuntimeError(f"{message}: {shlex.quote(sys.executable)} -m pip uninstall nni")


if _real is not None and "PITCHPIPE_REPORTS" in os.environ:
    _where = os.path.dirname(_real.origin or "")
    for _name in ("get_next_parameter", "report_intermediate_result", "report_final_result"):
        setattr(_module, _name, _refuse)
