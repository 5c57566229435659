"""Families: configurations that are run several times, each like a trial with the means of its repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from ...numerics import interval, mean
from ...runner import ExperimentStatus, TrialStatus
from .database import Database
from .read_model import FamilyRow, Repeats, TrialRow
from .trial_columns import RAN
from .trial_rows import rows_by_number

_RESULTS = (
    "SELECT {number} AS sequence_id, {time} AS end_time, o.name AS name, {value} AS value"
    " FROM objective_values o JOIN trials t USING (sequence_id) WHERE t.status = 'SUCCEEDED'"
)
_SINGLE = _RESULTS.format(number="t.sequence_id", time="t.end_time", value="o.value")
_MEANS = _RESULTS.format(number="family_of(t.record)", time="max(t.end_time)", value="mean_of(o.value)")
_ENDED = "SELECT sequence_id FROM trials WHERE family_end_of(record) IN ('complete', 'raced')"
_BEGUN = (
    "SELECT sequence_id FROM trials WHERE family_of(record) = sequence_id"
    " AND coalesce(family_end_of(record), '') NOT IN ('stopped', 'failed')"
)


def outcomes_of(db: Database) -> str:
    """Return the SQL query of all results: `sequence_id`, `end_time`, `name` and `value`.

    Of repeats these are the means of the families that have ended, or, before the first one has, of all.
    """
    if db.repeats() < 2:
        return _SINGLE
    counted = _BEGUN if db.row(f"{_ENDED} LIMIT 1") is None else _ENDED
    return _means_of(counted)


def _means_of(families: str) -> str:
    return (
        f"{_MEANS} AND family_of(t.record) IN ({families}) GROUP BY family_of(t.record), o.name"
        " HAVING mean_of(o.value) IS NOT NULL"
    )


def read_outcomes(db: Database, numbers: Sequence[int]) -> list[TrialRow]:
    """Return the trials with these numbers, or the families that they are the first of."""
    return [*read_families(db, numbers)] if db.repeats() > 1 else rows_by_number(db, numbers)


def read_family_outline(db: Database, metrics: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield all families as `read_outline` does; those without a mean have no status."""
    means = dict[int, dict[str, float]]()
    ends = dict[int, float]()
    for number, end, name, value in db.rows(_means_of(_ENDED)):
        means.setdefault(number, {})[name], ends[number] = value, end
    for portion in db.portions("SELECT sequence_id, family_of(record) FROM trials"):
        yield [
            (
                number,
                TrialStatus.SUCCEEDED.value if number in means else "",
                ends.get(number),
                *map(means.get(number, {}).get, metrics),
            )
            for number, family in portion
            if number == family
        ]


def read_families(db: Database, numbers: Sequence[int] | None = None) -> list[FamilyRow]:
    """Return the families with these numbers, or all by number, like trials in a page of the table."""
    if db.repeats() < 2:
        return []
    members, wanted = dict[int, list[_Repeat]](), None if numbers is None else {*numbers}
    for family, *repeat in db.rows(_MEMBERS):
        if wanted is None or family in wanted:
            members.setdefault(family, []).append(_Repeat(*repeat))
    values = _values_of(db, [one.number for repeats in members.values() for one in repeats])
    firsts = rows_by_number(db, sorted(members) if numbers is None else numbers)
    return [_family(db, first, members.get(first.sequence_id, []), values) for first in firsts]


def read_family(db: Database, trial: TrialRow) -> FamilyRow | None:
    """Return the family of a trial; None if its configuration runs once."""
    return None if trial.family is None else next(iter(read_families(db, [trial.family])), None)


class _Repeat(NamedTuple):
    """A trial of a family."""

    number: int
    status: str
    end_time: float | None
    seconds: float  # for which it has run


# Those that the end of an experiment cancelled are replaced.
_MEMBERS = (
    f"SELECT family_of(t.record), t.sequence_id, t.status, t.end_time, coalesce({RAN}, 0.0) FROM trials t"
    " WHERE family_of(t.record) IS NOT NULL AND t.status <> 'SYS_CANCELED' ORDER BY t.sequence_id"
)


def _values_of(db: Database, numbers: Iterable[int]) -> dict[int, dict[str, float]]:
    """Return the values of trials by number and metric."""
    wanted, found = set(numbers), dict[int, dict[str, float]]()
    for number, name, value in db.rows("SELECT sequence_id, name, value FROM objective_values"):
        if number in wanted:
            found.setdefault(number, {})[name] = value
    return found


def _family(
    db: Database, first: TrialRow, members: Sequence[_Repeat], values: Mapping[int, dict[str, float]]
) -> FamilyRow:
    """Return a family: its first trial, with the means, their intervals and its repeats.

    `duration` is the time that all of them ran; reasons of single trials are left out.
    """
    succeeded = [
        one.number for one in members if one.status == TrialStatus.SUCCEEDED and one.number in values
    ]
    columns = {
        name: [values[one][name] for one in succeeded] for name in (values[succeeded[0]] if succeeded else ())
    }
    means = {name: mean(column) for name, column in columns.items()}
    ended = [one.end_time for one in members if one.end_time is not None]
    like_a_trial = replace(
        first,
        status=_status(db, first.family_end, members),
        values=means,
        value=means.get(db.main_objective()),
        final=None,
        end_time=max(ended, default=None),
        duration=sum(one.seconds for one in members),
        reason="",
        kind=None,
    )
    return FamilyRow(
        **{one.name: getattr(like_a_trial, one.name) for one in fields(TrialRow)},
        repeats=Repeats(
            trials=[one.number for one in members],
            count=len(succeeded),
            of=db.repeats(),
            interval={name: interval(column) for name, column in columns.items()},
            end=first.family_end,
        ),
    )


def _status(db: Database, end: str | None, members: Iterable[_Repeat]) -> str:
    """Return the status of a family in the words for trials: the end of the experiment cancels an open one."""
    if end in _STATUSES:
        return _STATUSES[end].value
    if any(not TrialStatus(one.status).is_final for one in members):
        return TrialStatus.RUNNING.value
    row = db.row("SELECT status FROM experiment")
    is_over = row is not None and ExperimentStatus(row[0]).is_final
    return (TrialStatus.SYS_CANCELED if is_over else TrialStatus.WAITING).value


_STATUSES = {
    "complete": TrialStatus.SUCCEEDED,
    "raced": TrialStatus.SUCCEEDED,
    "stopped": TrialStatus.EARLY_STOPPED,
    "failed": TrialStatus.FAILED,
}
