"""Where a search starts, as the config says it: points, priors, earlier searches; `starting_points` checks them."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo

from .problems import did_you_mean, shown
from .sections import Section
from .units import UnitError
from .values import absolute_path, as_tuple, is_number, system_text

__all__ = ["Confidence", "EarlierSearches", "Points", "PriorConfig"]

_CONFIDENCES = {"low": 0.25, "medium": 0.5, "high": 0.75}


def _confidence(value: Any) -> float:
    known = _CONFIDENCES.get(value.lower(), math.nan) if isinstance(value, str) else value
    if not is_number(known) or not 0 <= known <= 1:
        words = ", ".join(_CONFIDENCES)
        hint = did_you_mean(value, _CONFIDENCES)
        raise UnitError(f"must be {words}, or a number from 0 to 1, not {shown(value)}", hint)
    return float(known)


def _earlier_search(value: Any, info: ValidationInfo) -> str:
    """Return an experiment's id or an Optuna study as it is, or the absolute path of a CSV file or a folder."""
    if not isinstance(value, str) or not value:
        raise UnitError(
            f"must be an experiment's id or folder, a CSV file, or STORAGE:STUDY, not {shown(value)}"
        )
    system_text(value)
    if "://" in value:
        if ":" not in value.partition("://")[2]:
            raise UnitError(f"{value} names no study", f"{value}:NAME")
        return value
    if value.endswith(".db") and (file := absolute_path(value, info)).is_file():
        hint = f"for a study of Optuna in it: sqlite:///{file}:NAME"
        raise UnitError(f"{value} is a file, not an experiment", hint)
    is_path = value.endswith(".csv") or "/" in value or value.startswith("~")
    return str(absolute_path(value, info)) if is_path else value


EarlierSearches = Annotated[
    tuple[Annotated[str, BeforeValidator(_earlier_search)], ...], BeforeValidator(as_tuple)
]
Points = Annotated[tuple[dict[str, Any], ...], BeforeValidator(as_tuple)]
Confidence = Annotated[float, BeforeValidator(_confidence)]


class PriorConfig(Section):
    """Where good values of a parameter are expected, and how sure that is."""

    centre: Any = Field(
        description="The best value that you expect, or null; of a nested choice, its `_name`."
    )
    confidence: Confidence = Field(
        default=_CONFIDENCES["medium"],
        description="`low` (0.25), `medium`, `high` (0.75), or a number from 0 to 1.",
    )

    def canonical(self) -> dict[str, Any]:
        """Return the section as JSON, also with null as the centre."""
        return {"centre": None, **super().canonical()}
