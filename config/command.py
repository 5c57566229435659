"""The trial command: placeholders that are no parameter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .problems import did_you_mean
from .root_fields import ConfigFields

__all__ = ["warnings_about_command"]

_PLACEHOLDER = re.compile(r"(?<!\$)\{([\w-]+)\}")
_SINGLE_QUOTED = re.compile("'[^']*'")  # often a program with braces of its own: awk '{print}'
_LISTED = 10


def warnings_about_command(config: ConfigFields) -> Iterator[str]:
    """Yield a warning for each `{NAME}` in the command that is no parameter.

    In single quotes, and for a tuner of the user's, which may add parameters, it must be written like one.
    """
    command = config.trial_command or ""
    known = ["args", *dict.fromkeys(_names(config.search_space))]
    unquoted = _PLACEHOLDER.findall(_SINGLE_QUOTED.sub("", command))
    for name in dict.fromkeys(_PLACEHOLDER.findall(command)):
        if name in known:
            continue
        hint = did_you_mean(name, known)
        is_meant = name in unquoted and not name.isdigit()
        if not hint and is_meant and config.tuner.class_name is None:
            hint = f"there are {', '.join(known[:_LISTED])}" + (" ..." if len(known) > _LISTED else "")
        if hint:
            yield f"{{{name}}} in trial_command is no parameter and stays as it is: {hint}"


def _names(space: Any) -> Iterator[str]:
    """Yield the names of the parameters, those of nested choices and of the batches of a list included."""
    if isinstance(space, Mapping):
        for name, value in space.items():
            if not str(name).startswith("_"):
                yield str(name)
            yield from _names(value)
    elif isinstance(space, list | tuple):
        for item in space:
            yield from _names(item)
