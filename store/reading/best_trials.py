"""The best trials, and the history of the best value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import understood
from .database import Database
from .trial_rows import rows_by_number

__all__ = ["read_best", "read_history"]

_VALUES = (
    "SELECT t.sequence_id, t.end_time, o.value FROM objective_values o JOIN trials t USING (sequence_id)"
    " WHERE o.name = ? AND t.status = 'SUCCEEDED'"
)


def read_best(db: Database, objectives: Sequence[Mapping[str, str]], count: int) -> list[dict[str, Any]]:
    """Return the best `count` trials by one objective (of equals, the earlier), or the Pareto front of several."""
    if len(objectives) == 1:
        name, direction = objectives[0]["name"], objectives[0]["direction"]
        order = "ASC" if direction == "minimize" else "DESC"
        rows = db.rows(f"{_VALUES} ORDER BY o.value {order}, t.sequence_id LIMIT ?", (name, count))
        return rows_by_number(db, [row[0] for row in rows])
    return rows_by_number(db, _front(db, objectives))


def read_history(db: Database, objective: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the results of an objective in the order in which the trials ended, each with the best so far."""
    best = "min" if objective["direction"] == "minimize" else "max"
    rows = db.rows(
        f"SELECT sequence_id, end_time, value, {best}(value) OVER (ORDER BY end_time, sequence_id ROWS UNBOUNDED"
        f" PRECEDING) FROM ({_VALUES}) ORDER BY end_time, sequence_id",
        (objective["name"],),
    )
    return [dict(zip(("sequence_id", "time", "value", "best"), row, strict=True)) for row in rows]


def _front(db: Database, objectives: Sequence[Mapping[str, str]]) -> list[int]:
    """Return the numbers of the trials that no other dominates."""
    signs = [1.0 if objective["direction"] == "minimize" else -1.0 for objective in objectives]
    points: dict[int, list[float]] = {}
    with understood(db.path, "objective_values"):
        for sign, objective in zip(signs, objectives, strict=True):
            for sequence_id, _, value in db.rows(_VALUES, (objective["name"],)):
                points.setdefault(sequence_id, []).append(sign * value)
    whole = sorted((point, number) for number, point in points.items() if len(point) == len(objectives))
    front: list[tuple[list[float], int]] = []
    for point, number in whole:  # what dominates a point comes before it in this order
        if not any(_dominates(other, point) for other, _ in front):
            front.append((point, number))
    return sorted(number for _, number in front)


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    return one != other and all(mine <= theirs for mine, theirs in zip(one, other, strict=True))
