"""The errors of a dispatcher, by who is at fault.

DispatcherError
├── PluginNotLoaded       a tuner or assessor that the configuration names cannot be loaded
├── PluginFailed          a method of a plug-in raised
├── PluginReturnedInvalid a method of a plug-in returned an invalid value
├── UnsupportedCommand    the manager sent what a dispatcher does not handle
└── ChannelClosed         the manager no longer reads
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import Repr
from typing import Any

from ..protocol import CommandType
from ..search_space import Problem


class DispatcherError(Exception):
    """Anything wrong in a dispatcher."""


class PluginNotLoaded(DispatcherError):
    """A plug-in cannot be loaded; `problems` say why, each with a path into the configuration."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(_sentence(problem) for problem in self.problems))


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


def _sentence(problem: Problem) -> str:
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{'.'.join(map(str, problem.path))}: {problem.message}{hint}"


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 200
