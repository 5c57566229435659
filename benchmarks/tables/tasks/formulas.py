"""Two tasks without any library, with known fronts, that show in seconds whether everything works."""

from __future__ import annotations

import math
from typing import Any

from task import Task

__all__ = ["names", "open_task"]

_SPACE = {
    "x": {"_type": "uniform", "_value": [0.0, 1.0]},
    "width": {"_type": "qloguniform", "_value": [1, 64, 1]},
    "depth": {"_type": "randint", "_value": [0, 4]},
    "kind": {"_type": "choice", "_value": ["plain", "wide"]},
}
# The volume that the front dominates in the unit square.
_VOLUMES = {"convex": 2 / 3, "concave": 1 / 3}


def names(_table: str) -> list[str]:
    """Return the names of the tasks."""
    return sorted(_VOLUMES)


def open_task(_table: str, name: str, _seed: int) -> Task:
    """Make a task; the seed changes nothing."""

    def evaluate(parameters: dict[str, Any]) -> list[float]:
        worse = abs(math.log2(parameters["width"]) - 3) / 3 + 0.2 * abs(parameters["depth"] - 2)
        distance = 1.0 + worse + 0.3 * (parameters["kind"] == "wide")
        share = parameters["x"] / distance
        bent = math.sqrt(share) if name == "convex" else share**2
        return [parameters["x"], distance * (1 - bent)]

    facts = {"ideal": [0.0, 0.0], "worst": [1.0, 1.0], "volume": _VOLUMES[name]}
    return Task(_SPACE, evaluate, ["default", "cost"], facts)
