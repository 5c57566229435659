"""A section of the config: frozen, strict, and its canonical form."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["Section", "camel_case"]


class Section(BaseModel):
    """A part of the config: strict types, no unknown fields, no changes after it is made."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    def canonical(self) -> dict[str, Any]:
        """Return the section as JSON with camelCase keys, without fields that are not set."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {camel_case(name): _plain(value) for name, value in values.items() if value is not None}


def camel_case(name: str) -> str:
    """Return the canonical spelling of a field name.

    >>> camel_case("max_trial_number")
    'maxTrialNumber'
    """
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return value.canonical()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else copy.deepcopy(value)
