"""Names, for annotations, of JSON values whose names and values users or other programs choose."""

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
