"""Imports the library of an adapter, or says in one sentence how to get it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..protocol import MissingExtraError, install_command, is_older


def required(module: str, least: str, extra: str | None = None) -> Any:
    """Import a library and return it; `extra` is Pitchpipe's extra for it, if that has another name.

    Raises `MissingExtraError`, with the command that installs it, if it is missing, fails, or is older than `least`.

    >>> required("numpy", "1.26").__name__
    'numpy'
    >>> required("numpy", "99.1", "pandas")
    Traceback (most recent call last):
    pitchpipe.protocol.extras.MissingExtraError: pitchpipe.integrations needs numpy 99.1 or newer, ...: pip install ...
    """
    name = module.partition(".")[0]
    try:
        library = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise _missing(f"{name}, which is not installed", extra or name) from None
    except Exception as error:  # as old versions do with a newer Python
        why = f"and this one cannot be imported ({type(error).__name__}: {error})"
        raise _missing(f"{name} {least} or newer, {why}", extra or name) from error
    version = str(library.__version__)
    if is_older(version, least):
        raise _missing(f"{name} {least} or newer, and {version} is installed", extra or name)
    return import_module(module)  # an old version may not have it


def _missing(what: str, extra: str) -> MissingExtraError:
    return MissingExtraError(f"pitchpipe.integrations needs {what}: {install_command(extra)}")
