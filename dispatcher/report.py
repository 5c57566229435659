"""The payload of an Error frame: whose fault it is, what happened, and where."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from .errors import PluginFailed, PluginReturnedInvalid

_HERE = str(Path(__file__).parent)


def error_report(error: BaseException, command: int | None = None) -> dict[str, Any]:
    """Return what a manager shows of a failure; `command` is the number of the command that caused it.

    >>> report = error_report(ValueError("no"), 3)
    >>> report["plugin"], report["type"], report["message"], report["command"]
    ('dispatcher', 'ValueError', 'no', 3)
    """
    plugin = error.plugin if isinstance(error, PluginFailed | PluginReturnedInvalid) else "dispatcher"
    shown = error.__cause__ if isinstance(error, PluginFailed) and error.__cause__ else error
    return {
        "plugin": plugin,
        "type": type(shown).__name__,
        "message": str(shown),
        "where": _where(error, shown),
        "traceback": _traceback_of(shown),
        "command": command,
    }


def _where(error: BaseException, shown: BaseException) -> str:
    """Return the place to look at, as in `my_tuner.py:12 in generate_parameters`."""
    if isinstance(error, PluginReturnedInvalid):
        return error.method
    frames = _frames(shown)
    if not frames:
        return error.method if isinstance(error, PluginFailed) else ""
    # A plug-in's author looks into its file first; the code that it called may be anyone's.
    file = error.file if isinstance(error, PluginFailed) else ""
    frame = ([frame for frame in frames if frame.filename == file] or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an error that are outside the dispatcher, or all of them if none is."""
    frames = list(traceback.extract_tb(error.__traceback__))
    return [frame for frame in frames if not frame.filename.startswith(_HERE)] or frames


def _traceback_of(error: BaseException) -> str:
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None and tb.tb_frame.f_code.co_filename.startswith(_HERE):
        tb = tb.tb_next
    return "".join(traceback.format_exception(type(error), error, tb))
