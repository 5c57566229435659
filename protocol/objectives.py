"""Objectives: the metrics that are optimised, and the limits that others must keep."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from .json_types import Config
from .metrics import metric_value

ROUNDING = 1e-9
"""The part of a limit by which a value may exceed it: sums such as 0.1 + 0.2 do."""

Direction = Literal["minimize", "maximize"]
_CONSTRAINT = re.compile(r"\s*(<=|>=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")


class Objective(NamedTuple):  # not a dataclass: see Frame
    """A metric: optimised if it has a direction, limited if it has limits, or both.

    >>> latency = Objective(name="latency", direction=None, at_most=20.0)
    >>> latency.excess({"latency": 23.0}), latency.excess({"latency": 15.0})
    (3.0, -5.0)
    """

    name: str = "default"
    direction: Direction | None = "minimize"
    reference: float | None = None  # a value that a good trial beats, from which volumes are measured
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def is_limited(self) -> bool:
        """Whether trials can violate it."""
        return math.isfinite(self.at_least) or math.isfinite(self.at_most)

    def loss(self, report: Any) -> float:
        """Return the value in a report, the lower the better; raise `MetricError` if there is none."""
        return self.sign * metric_value(report, self.name)

    @property
    def sign(self) -> float:
        """1 to minimize, -1 to maximize."""
        return -1.0 if self.direction == "maximize" else 1.0

    @property
    def limits_text(self) -> str:
        """The limits in words.

        >>> Objective(name="f1", direction=None, at_least=0.5, at_most=1.0).limits_text
        '>= 0.5, <= 1'
        """
        ends = (">=", self.at_least), ("<=", self.at_most)
        return ", ".join(f"{symbol} {limit:.12g}" for symbol, limit in ends if math.isfinite(limit))

    def violation(self, value: float) -> float:
        """Return by how much a value exceeds the limits, relative to the limit where that is not 0; 0 if it keeps them.

        >>> latency = Objective(name="latency", direction=None, at_most=20.0)
        >>> latency.violation(25.0), latency.violation(15.0)
        (0.25, 0.0)
        """
        excess, limit = max(self._excesses(value), default=(0.0, 1.0))
        return max(excess, 0.0) / (abs(limit) or 1.0)

    def excess(self, report: Any) -> float:
        """Return by how much a report exceeds the limits, below 0 if it keeps them; raise `MetricError`."""
        return self.excess_of(metric_value(report, self.name))

    def excess_of(self, value: float) -> float:
        """Return by how much a value exceeds the limits, below 0 if it keeps them."""
        return max(self._excesses(value), default=(-math.inf, 1.0))[0]

    def _excesses(self, value: float) -> list[tuple[float, float]]:
        """Return by how much a value exceeds each limit, and the limit."""
        ends = (value - self.at_most, self.at_most), (self.at_least - value, self.at_least)
        return [
            (0.0 if 0.0 < excess <= ROUNDING * abs(limit) else excess, limit)
            for excess, limit in ends
            if math.isfinite(limit)
        ]

    @property
    def kept_range(self) -> tuple[float, float]:
        """The lowest and the highest value that keep the limits: 0.1 + 0.2 keeps `<= 0.3`.

        >>> low, high = Objective(name="s", direction=None, at_most=0.3).kept_range
        >>> 0.1 + 0.2 <= high < 0.3000001
        True
        """
        return self.at_least - ROUNDING * abs(self.at_least), self.at_most + ROUNDING * abs(self.at_most)


def objectives_of(given: Sequence[Config]) -> tuple[Objective, ...]:
    """Return the objectives of a canonical configuration.

    >>> objectives_of([{"direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}])[1].at_most
    20.0
    """
    return tuple(_objective(item) for item in given)


def _objective(item: Config) -> Objective:
    at_least, at_most = -math.inf, math.inf
    if (constraint := item.get("constraint")) is not None:
        at_least, at_most = constraint_limits(constraint)
    return Objective(
        name=item.get("name") or "default",
        direction=item.get("direction"),
        reference=item.get("reference"),
        at_least=at_least,
        at_most=at_most,
    )


def main_objective(objectives: Sequence[Objective]) -> Objective:
    """Return the one that plug-ins for one objective optimise: `default`, or else the first that has a direction.

    >>> given = [{"name": "ms", "constraint": "<= 9"}, {"name": "f1", "direction": "maximize"}]
    >>> main_objective(objectives_of(given)).name
    'f1'
    """
    goals = [goal for goal in objectives if goal.direction is not None] or [Objective()]
    return next((goal for goal in goals if goal.name == "default"), goals[0])


def constraint_limits(text: str) -> tuple[float, float]:
    """Return the limits that a constraint sets, `<= 20` or `>= 0.5`, or both with a comma; raise `ValueError`.

    >>> constraint_limits(">= 0.5, <= 1")
    (0.5, 1.0)
    """
    at_least, at_most = -math.inf, math.inf
    for part in text.split(","):
        match = _CONSTRAINT.fullmatch(part)
        if match is None:
            raise ValueError(f"{part.strip()!r} is not <= NUMBER or >= NUMBER")
        limit = float(match[2])
        if match[1] == "<=":
            at_most = min(at_most, limit)
        else:
            at_least = max(at_least, limit)
    if at_least > at_most:
        raise ValueError(f"no value is {text.strip()}")
    return at_least, at_most
