"""Imports the library of an adapter, or says in one sentence how to get it."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any


def required(module: str, least: str, extra: str | None = None) -> Any:
    """Import a library and return it; `extra` is Pitchpipe's extra for it, if that has another name.

    Raises ImportError, with the command that installs it, if it is missing, fails, or is older than version `least`.

    >>> required("numpy", "1.26").__name__
    'numpy'
    >>> required("numpy", "99.1", "arrays")
    Traceback (most recent call last):
    ImportError: pitchpipe.integrations needs numpy 99.1 or newer, ...: pip install --upgrade "pitchpipe[arrays]"
    """
    name = module.partition(".")[0]
    command = f'pip install --upgrade "pitchpipe[{extra or name}]"'
    try:
        library = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(f"pitchpipe.integrations needs {name}, which is not installed: {command}") from None
    except Exception as error:  # as old versions do with a newer Python
        raise ImportError(
            f"pitchpipe.integrations needs {name} {least} or newer, and this one cannot be imported"
            f" ({type(error).__name__}: {error}): {command}"
        ) from error
    version = str(library.__version__)
    if _numbers(version) < _numbers(least):
        raise ImportError(
            f"pitchpipe.integrations needs {name} {least} or newer, and {version} is installed: {command}"
        )
    return import_module(module)  # an old version may not have it


def _numbers(version: str) -> list[int]:
    """Return the numbers at the beginning of a version, up to any letter."""
    return [int(number) for number in re.findall(r"\d+", re.split(r"[a-zA-Z+]", version)[0])]
