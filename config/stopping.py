"""When a search ends before its limits, as the config says it; `cross_checks` compares it with other fields."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..protocol import number_in
from .problems import did_you_mean, shown
from .sections import Section
from .units import UnitError
from .values import is_number

__all__ = ["GainLimit", "StopConfig"]


def _gain_limit(value: Any) -> float | str:
    if value == "noise":
        return value
    hint = did_you_mean(value, ["noise"]) or "a number in units of the objective, such as 0.001, or noise"
    if not is_number(value) or not math.isfinite(number_in(value)):
        raise UnitError(f"must be a number or noise, not {shown(value)}", hint)
    if value <= 0:
        raise UnitError(f"must be greater than 0, not {shown(value)}", hint)
    return float(value)


GainLimit = Annotated[float | Literal["noise"], BeforeValidator(_gain_limit)]


class StopConfig(Section):
    """When the search ends before its limits."""

    expected_gain_below: GainLimit = Field(
        description="The search ends when the further gain that a model of the results expects is below this number, in"
        " units of the objective, or below the estimated `noise` of a result."
    )
    min_trials: int = Field(
        default=20,
        gt=0,
        description="At least this many trials must have succeeded, and kept all limits, before it ends.",
    )
