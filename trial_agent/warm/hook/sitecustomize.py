"""What `site` imports first in a Python that is to start trials: it runs one of the modules beside this folder.

In a forked trial it gives way to the `sitecustomize` that the interpreter has otherwise, or to none.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_here = os.path.dirname(os.path.abspath(__file__))


def _load(name: str) -> ModuleType:
    path = os.path.join(os.path.dirname(_here), f"{name}.py")
    module = type(sys)(f"_pitchpipe_{name}")
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), vars(module))
    return module


try:
    _has_another = _load(os.environ["PITCHPIPE_WARM"]).run(_here, _load)
except BaseException as _error:  # noqa: BLE001 (whatever it is, the interpreter must not go on and run the script)
    sys.excepthook(type(_error), _error, _error.__traceback__)
    os._exit(70)
if not _has_another:
    raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
