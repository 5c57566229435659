"""What is known of an experiment before its trials end: how fast they report, the best so far, and how long it takes.

The rate at which trials end says nothing of trials that take longer than the minute over which it is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .database import Database
from .field_sql import number_expression
from .read_model import BestIntermediate

_RUNNING = (
    "SELECT next_sequence, first_sequence, start_time, budget, (SELECT m.time FROM metrics m"
    " WHERE m.sequence_id = t.sequence_id AND m.kind = 'PERIODICAL' AND NOT m.superseded"
    " ORDER BY m.sequence DESC LIMIT 1) FROM trials t WHERE status = 'RUNNING' AND start_time IS NOT NULL"
)
_LENGTHS = (
    "SELECT avg(CASE WHEN status = 'SUCCEEDED' THEN next_sequence END), avg(next_sequence) FROM trials"
    " WHERE status IN ('SUCCEEDED', 'EARLY_STOPPED') AND next_sequence > 0"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast the running trials report, and how many seconds each of them, and a new trial, still takes.

    Without a known length of trials, `new` is None and `left` is empty.
    """

    results_per_minute: float = 0.0
    left: Sequence[float] = ()
    new: float | None = None

    def remaining(self, open_trials: int) -> float | None:
        """Return the seconds until the running trials and so many others have ended; None if that is unknown.

        >>> Pace(left=[60.0, 100.0], new=120.0).remaining(2), Pace().remaining(2)
        (200.0, None)
        """
        if not self.left or self.new is None:
            return None
        return max(*self.left, (sum(self.left) + open_trials * self.new) / len(self.left))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """A running trial: its results in all, those of this attempt, when it began and last reported, and its budget."""

    results: int
    first: int
    start: float
    budget: float | None
    last: float | None

    @property
    def pace(self) -> float | None:
        """Results per second of this attempt."""
        if self.last is None or self.results <= self.first or self.last <= self.start:
            return None
        return (self.results - self.first) / (self.last - self.start)

    def left(self, length: float, pace: float, now: float) -> float:
        """Return the seconds until it has made `length` results."""
        since = now - (self.start if self.last is None else max(self.start, self.last))
        return max(0.0, (length - self.results) / (self.pace or pace) - since)


def read_pace(db: Database, now: float) -> Pace:
    """Return the pace of the running trials at a time, in seconds since the epoch.

    A trial is as long as its budget, else as those that have succeeded; a new one as those that have ended.
    """
    running = [
        _Running(results=results, first=first, start=start, budget=budget, last=last)
        for results, first, start, budget, last in db.rows(_RUNNING)
    ]
    paces = [trial.pace for trial in running if trial.pace is not None]
    if not paces:
        return Pace()
    mean = sum(paces) / len(paces)
    whole, usual = db.row(_LENGTHS) or (None, None)
    lengths = [whole if trial.budget is None else trial.budget for trial in running]
    known = [length for length in lengths if length is not None]
    if len(known) < len(lengths):  # the length of some is unknown
        return Pace(results_per_minute=60.0 * sum(paces))
    left = [trial.left(length, mean, now) for trial, length in zip(running, known, strict=True)]
    new = (usual or sum(known) / len(known)) / mean
    return Pace(results_per_minute=60.0 * sum(paces), left=left, new=new)


def read_best_intermediate(db: Database) -> BestIntermediate | None:
    """Return the best intermediate result in the first objective, of all trials but those that failed."""
    goal = db.goals()[0]
    number, bound = number_expression("value", goal.name, db.main_objective())
    row = db.row(
        f"SELECT * FROM (SELECT sequence_id, sequence, {number} AS number FROM metrics"
        " WHERE kind = 'PERIODICAL' AND NOT superseded"
        " AND sequence_id NOT IN (SELECT sequence_id FROM trials WHERE status = 'FAILED'))"
        " WHERE number IS NOT NULL"
        f" ORDER BY number {'DESC' if goal.direction == 'maximize' else 'ASC'}, sequence_id, sequence LIMIT 1",
        bound,
    )
    return None if row is None else BestIntermediate(row[0], row[1], float(row[2]))
