"""A loaded plug-in as the dispatcher calls it: errors inside it are reported as its fault."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, NoReturn

from ..plugins import taken
from .errors import PluginFailed, PluginReturnedInvalid

_PACKAGE = __name__.rpartition(".dispatcher")[0]


def _end_child(error: BaseException) -> NoReturn:
    """End this process with the exit code that a program of its own would have."""
    code = 1
    try:
        if isinstance(error, SystemExit) and isinstance(error.code, int | None):
            code = error.code or 0
        else:
            traceback.print_exception(error)
    finally:  # a signal may interrupt what it prints; it would serve the manager as well
        os._exit(code & 0xFF)


class Plugin:
    """A tuner or an assessor with its role; `call` runs a method of it.

    >>> Plugin("tuner", object()).call("trial_end", 0, True)
    Traceback (most recent call last):
    pitchpipe.dispatcher.errors.PluginFailed: trial_end of the tuner raised AttributeError: 'object' object has no attribute 'trial_end'
    """  # noqa: E501

    def __init__(self, role: str, instance: Any) -> None:
        self.role, self.instance = role, instance

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return what the method returns; raise `PluginFailed` from anything that it raises, even exit().

        A child process that the method forks ends here when it returns: it would continue as a second dispatcher.
        """
        process = os.getpid()
        try:
            bound = getattr(self.instance, method)
            returned = bound(*args, **taken(bound, kwargs))
            if os.getpid() != process:
                os._exit(0)
            return returned
        except BaseException as error:
            if os.getpid() != process:
                _end_child(error)
            module = sys.modules.get(type(self.instance).__module__)
            raise PluginFailed(self.role, method, error, getattr(module, "__file__", None) or "") from error

    def has(self, method: str) -> bool:
        """Return whether the plug-in has this method."""
        return callable(getattr(self.instance, method, None))

    def is_users(self, method: str) -> bool:
        """Return whether a method was written outside Pitchpipe."""
        module = getattr(getattr(self.instance, method, None), "__module__", None) or ""
        return not module.startswith(f"{_PACKAGE}.")

    def invalid(self, method: str, value: Any, why: str) -> PluginReturnedInvalid:
        """Return the error for a value that the method must not return."""
        return PluginReturnedInvalid(self.role, method, value, why)
