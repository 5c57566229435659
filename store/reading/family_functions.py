"""What SQL needs to know of families: functions over parameter records, and the mean that the tuner got."""

from __future__ import annotations

import math
import sqlite3

from ...numerics import mean
from ...protocol import family_end_of, repeat_of

__all__ = ["add_functions"]


def add_functions(db: sqlite3.Connection) -> None:
    """Let statements use `family_of(record)`, `repeat_of(record)`, `family_end_of(record)` and `mean_of(value)`.

    >>> db = sqlite3.connect(":memory:")
    >>> add_functions(db)
    >>> db.execute("SELECT family_of(?)", ('{"parameters": {}, "family": 7, "repeat": 2}',)).fetchone()
    (7,)
    """
    db.create_function("family_of", 1, _family_of, deterministic=True)
    db.create_function("repeat_of", 1, _repeat_of, deterministic=True)
    db.create_function("family_end_of", 1, family_end_of, deterministic=True)
    db.create_aggregate("mean_of", 1, _Mean)  # type: ignore[arg-type]


def _family_of(record: str) -> int | None:
    found = repeat_of(record)
    return None if found is None else found[0]


def _repeat_of(record: str) -> int | None:
    found = repeat_of(record)
    return None if found is None else found[1]


class _Mean:
    """The mean of a column; NULL if there is none."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: float) -> None:
        """Take a value."""
        self._values.append(value)

    def finalize(self) -> float | None:
        """Return the mean."""
        found = mean(self._values) if self._values else math.nan
        return None if math.isnan(found) else found
