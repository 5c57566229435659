"""`python -m pitchpipe.nni train.py`: runs a script that imports nni.

Inside an experiment, scripts that import nni need no such help.
"""

from __future__ import annotations

import os
import runpy
import shlex
import sys
from importlib.machinery import PathFinder
from types import TracebackType

from .alias import PATH, activate

_HERE = os.path.abspath(os.path.join(__file__, *[os.pardir] * 3)) + os.sep  # the package
_PYTHONS = os.path.dirname(os.__file__) + os.sep
_PAGE = "docs/reference/nni.md"
_REMOVE = f"{shlex.quote(sys.executable)} -m pip uninstall nni"


def run_script(arguments: list[str] | None = None) -> None:
    """Run the script that the first argument names, with the other arguments; `--path` prints the alias's folder."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        raise SystemExit(
            "usage: python -m pitchpipe.nni SCRIPT [ARGUMENT]...  or  python -m pitchpipe.nni --path"
        )
    if given == ["--path"]:
        print(PATH)
        return
    if not os.path.isfile(given[0]):
        raise SystemExit(f"python -m pitchpipe.nni: there is no script {given[0]}")
    if real := _real_nni():
        raise SystemExit(
            f"python -m pitchpipe.nni: NNI itself is installed in {real}, and scripts would use it: {_REMOVE}"
        )
    activate()
    sys.argv = given
    sys.path[0] = os.path.dirname(os.path.abspath(given[0]))
    try:
        runpy.run_path(given[0], run_name="__main__")
    except Exception as error:  # noqa: BLE001 - shown as Python shows it, without the frames around the script's
        is_nnis = isinstance(error, ImportError) and str(error.name).partition(".")[0] == "nni"
        if is_nnis and _PAGE not in str(error):
            error.add_note(f"{_PAGE} lists the names of NNI that have a counterpart")
        frames = _from_script(error.__traceback__, given[0])
        sys.excepthook(type(error), error.with_traceback(frames), frames)
        raise SystemExit(1) from None


def _from_script(frames: TracebackType | None, script: str) -> TracebackType | None:
    """Return the frames from the script's first one on, without Pitchpipe's at the end; all if it has none."""
    first = frames
    while first is not None and first.tb_frame.f_code.co_filename != script:
        first = first.tb_next
    last = frame = first
    is_ours = False  # whether frames of ours follow `last`; Python's library may be below them
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if file.startswith(_HERE):
            is_ours = True
        elif "-packages" in file or not file.startswith(_PYTHONS):
            last, is_ours = frame, False
        frame = frame.tb_next
    if is_ours and last is not None:
        last.tb_next = None
    return first or frames


def _real_nni() -> str | None:
    """Return the folder of an installed nni, if there is one."""
    others = [entry for entry in sys.path if os.path.realpath(entry or ".") != os.path.realpath(PATH)]
    spec = PathFinder.find_spec("nni", others)
    return None if spec is None or spec.origin is None else os.path.dirname(spec.origin)
