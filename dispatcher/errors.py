"""The errors of a dispatcher, by who is at fault, and the report of one to the manager."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from reprlib import Repr
from typing import Any

from ..protocol import CommandType, ErrorMessage
from ..search_space import Problem


class DispatcherError(Exception):
    """Anything wrong in a dispatcher."""


class PluginNotLoaded(DispatcherError):
    """A plug-in cannot be loaded; `problems` say why, each with a path into the configuration."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


class PluginFailed(DispatcherError):
    """A method of a plug-in raised; `__cause__` is what it raised, `file` is where the plug-in's class is."""

    def __init__(self, plugin: str, method: str, cause: BaseException, file: str = "") -> None:
        self.plugin, self.method, self.file = plugin, method, file
        super().__init__(f"{method} of the {plugin} raised {type(cause).__name__}: {cause}")


class PluginReturnedInvalid(DispatcherError):
    """A method of a plug-in returned an invalid value; the message shows the value."""

    def __init__(self, plugin: str, method: str, value: Any, why: str) -> None:
        self.plugin, self.method, self.value = plugin, method, value
        super().__init__(f"{method} of the {plugin} returned {_SHORT.repr(value)}: {why}")


class UnsupportedCommand(DispatcherError, AssertionError):
    """The manager sent a command that a dispatcher does not handle (an AssertionError as in NNI)."""

    def __init__(self, command: CommandType) -> None:
        self.command = command
        super().__init__(f"Unsupported command: {command}")


class ChannelClosed(DispatcherError):
    """The manager no longer reads what the dispatcher sends."""


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 200

_HERE = str(Path(__file__).parent)


def error_report(error: BaseException, command: int | None = None) -> ErrorMessage:
    """Return the report of an error that a command, by its number, has caused.

    >>> report = error_report(ValueError("no"), 3)
    >>> report["plugin"], report["type"], report["message"], report["command"]
    ('dispatcher', 'ValueError', 'no', 3)
    """
    plugin = error.plugin if isinstance(error, PluginFailed | PluginReturnedInvalid) else "dispatcher"
    origin = error.__cause__ if isinstance(error, PluginFailed) and error.__cause__ else error
    return {
        "plugin": plugin,
        "type": type(origin).__name__,
        "message": str(origin),
        "where": _where(error, origin),
        "traceback": _traceback_of(origin),
        "command": command,
    }


def _where(error: BaseException, origin: BaseException) -> str:
    """Return the place to look at, as in `my_tuner.py:12 in generate_parameters`."""
    if isinstance(error, PluginReturnedInvalid):
        return error.method
    frames = _frames(origin)
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
