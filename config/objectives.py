"""The objectives in the config: metrics that are optimised, and metrics that are limited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..protocol import Objective, constraint_limits, objectives_of
from .problems import shown
from .sections import Section
from .units import UnitError
from .values import Text, as_tuple

__all__ = ["ObjectiveConfig", "Objectives", "warnings_about_objectives"]


def _outcome_constraint(value: Any) -> str:
    hint = 'such as "<= 20" or ">= 0.5, <= 1", in quotes'
    if not isinstance(value, str):
        raise UnitError(f"must be text, not {shown(value)}", hint)
    try:
        limits = constraint_limits(value)
    except ValueError as error:
        raise UnitError(str(error), hint) from error
    if not any(map(math.isfinite, limits)):
        raise UnitError(f"{shown(value)} is too large a number for a limit", hint)
    return value.strip()


class ObjectiveConfig(Section):
    """A metric of the final result: optimised if it has a direction, limited if it has a constraint."""

    name: Text = Field(default="default", description="The key of the metric in the reported dict.")
    direction: Literal["minimize", "maximize"] | None = Field(
        default=None, description="Which way is better; not set for a metric that is only limited."
    )
    constraint: Annotated[str, BeforeValidator(_outcome_constraint)] | None = Field(
        default=None,
        description='The limits that a good trial keeps: `"<= 20"`, `">= 0.5"` or both with a comma. YAML needs the'
        " quotes where it begins with `>` or has a comma in braces. There is no `<`, `>` or `==`.",
    )
    reference: float | None = Field(
        default=None,
        description="A value that every useful trial beats; the hypervolume is measured from it.",
    )

    def parsed(self) -> Objective:
        """Return it as the other rooms use it."""
        return objectives_of([self.canonical()])[0]


Objectives = Annotated[tuple[ObjectiveConfig, ...], BeforeValidator(as_tuple), Field(min_length=1)]


def warnings_about_objectives(objectives: Sequence[ObjectiveConfig]) -> list[str]:
    """Return what is probably a mistake: a reference of the only goal, of which there is no hypervolume.

    >>> warnings_about_objectives([ObjectiveConfig(direction="minimize", reference=2.0)])
    ['objectives[0].reference has no effect: there is one objective with a direction, so no hypervolume']
    """
    goals = [place for place, one in enumerate(objectives) if one.direction is not None]
    if len(goals) != 1 or objectives[goals[0]].reference is None:
        return []
    what = "has no effect: there is one objective with a direction, so no hypervolume"
    return [f"objectives[{goals[0]}].reference {what}"]
