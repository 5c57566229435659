"""JSON values whose names and values users or other programs choose: what annotations call them, and their spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value that JSON can hold, NaN and infinities included."""

JsonObject: TypeAlias = dict[str, Any]
"""An object as it is read or written: a search space, a reply, a row of `--json`."""

Parameters: TypeAlias = dict[str, Any]
"""The parameters of a trial by name. The value of a nested choice is an object with the name of its option, `_name`."""

Config: TypeAlias = Mapping[str, Any]
"""The configuration of an experiment in the canonical form (camelCase names), or a section of it."""


def camel_case(name: str) -> str:
    """Return the canonical spelling of a config's field.

    >>> camel_case("max_trial_number")
    'maxTrialNumber'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def snake_case(name: str) -> str:
    """Return the spelling of a canonical field that users write.

    >>> snake_case("maxTrialNumber")
    'max_trial_number'
    """
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
