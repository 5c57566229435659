"""Metrics: what trials report under names, as objectives or beside them.

A trial's value of a metric is what it reported last: the one in its final result, or else the one in its last
intermediate result that has the name. So a trial that runs, or was stopped, has one as well.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...numerics import mean
from ...protocol import Json, number_in
from ...runner import TrialStatus
from ..errors import understood
from .database import Database
from .field_sql import names_it
from .json_values import named_values, parsed
from .read_model import FamilyRow

if TYPE_CHECKING:
    import sqlite3

# What is read to know the names, so that a page does not wait for them: of some trials their last results and the
# first, while they have no more characters than this.
_MOST_TRIALS = 400
_MOST_RESULTS = 10
_MOST_TEXT = 3_000_000
_MOST_LISTED = 500  # trials in one statement
_MOST_GUARDED = 8  # names that are looked for before JSON is read
_REPORTS = "FROM metrics WHERE sequence_id = ? AND kind = 'PERIODICAL' AND NOT superseded AND value LIKE '{%'"


@dataclass(frozen=True, slots=True)
class Metric:
    """A name under which trials report values; `is_number` if all that were read are numbers.

    `is_final`: final results have it.
    """

    name: str
    is_number: bool
    is_final: bool = False


def read_metric_names(db: Database) -> tuple[Metric, ...]:
    """Return the metrics of an experiment, in the order in which the first trials reported them.

    Of many trials and results some are read; a metric that only few of them have can be missing here.
    """
    found, left = dict[int, list[tuple[Json, bool]]](), _MOST_TEXT
    with db.connection() as connection, understood(db.path, "metrics"):
        for number in _some_trials(connection):
            if left <= 0:
                break
            texts = [*_some_results(connection, number)]
            found[number] = [(parsed(text), is_final) for text, is_final in texts]
            left -= sum(len(text) for text, _ in texts)
    return _metrics(result for number in sorted(found) for result in found[number])


def _some_trials(connection: sqlite3.Connection) -> Iterator[int]:
    """Yield the numbers of trials that reported something: the last, the first, then some of the others."""
    rows = connection.execute("SELECT sequence_id FROM trials WHERE final IS NOT NULL OR next_sequence > 0")
    numbers = sorted(number for (number,) in rows)
    others = numbers[1:-1]
    if len(others) > _MOST_TRIALS:
        others = random.Random(len(others)).sample(others, _MOST_TRIALS)
    yield from dict.fromkeys([*numbers[-1:], *numbers[:1], *others])


def _some_results(connection: sqlite3.Connection, number: int) -> Iterator[tuple[str, bool]]:
    """Yield the first intermediate result of a trial with names, its last ones, and its final result (then True)."""
    for order, most in (("sequence", 1), ("sequence DESC", _MOST_RESULTS)):
        rows = connection.execute(f"SELECT value {_REPORTS} ORDER BY {order} LIMIT {most}", (number,))
        yield from ((text, False) for (text,) in rows)
    rows = connection.execute("SELECT final FROM trials WHERE sequence_id = ?", (number,))
    yield from ((text, True) for (text,) in rows if text is not None)


def _metrics(results: Iterable[tuple[Json, bool]]) -> tuple[Metric, ...]:
    metrics = dict[str, Metric]()
    for result, is_final in results:
        for name, value in named_values(result).items():
            before = metrics.get(name, Metric(name, True))
            is_number = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
            metrics[name] = Metric(name, before.is_number and is_number, before.is_final or is_final)
    return tuple(metrics.values())


def read_all_metric_names(db: Database) -> list[str]:
    """Return the names of all metrics, for an export: everything that was reported under a name is read."""
    names = dict[str, None]()
    for portion in db.portions("SELECT sequence_id, final FROM trials"):
        for number, final in portion:
            with understood(db.path, f"trial {number}"):
                for (text,) in db.rows(f"SELECT value {_REPORTS} ORDER BY sequence", (number,)):
                    names.update(dict.fromkeys(named_values(parsed(text))))
                names.update(dict.fromkeys(named_values(parsed(final))))
    return list(names)


def last_values(intermediate: Iterable[Json], final: Json) -> dict[str, Json]:
    """Return what a trial reported last under each name, in the order of their first reports.

    >>> last_values([{"loss": 0.5, "lr": 0.1}, {"loss": 0.4}, 0.9], {"default": 0.9, "loss": 0.3})
    {'loss': 0.3, 'lr': 0.1, 'default': 0.9}
    """
    values = dict[str, Json]()
    for result in (*intermediate, final):
        values |= named_values(result)
    return values


def read_metrics(db: Database, numbers: Sequence[int], names: Collection[str]) -> dict[int, dict[str, Json]]:
    """Return the metrics of these names that each trial has, by its number."""
    found, wanted = {number: dict[str, Json]() for number in numbers}, frozenset(names)
    for begin in range(0, len(numbers) if wanted else 0, _MOST_LISTED):
        listed = ", ".join(str(int(number)) for number in numbers[begin : begin + _MOST_LISTED])
        with db.connection() as connection:
            finals = connection.execute(
                f"SELECT sequence_id, final FROM trials WHERE sequence_id IN ({listed})"
            )
            for number, final in finals.fetchall():
                with understood(db.path, f"trial {number}"):
                    found[number] = _values_of(connection, number, wanted, final)
    return found


def _values_of(
    connection: sqlite3.Connection, number: int, names: frozenset[str], final: str | None
) -> dict[str, Json]:
    """Return the metrics of one trial: results are read from the last one back until all names are found."""
    values = {name: value for name, value in named_values(parsed(final)).items() if name in names}
    missing = names - values.keys()
    if not missing:
        return values
    guard, guarded = "", list[str]()
    if len(missing) <= _MOST_GUARDED:
        guards = [names_it("value", name) for name in missing]
        guard = f"AND ({' OR '.join(one for one, _ in guards)})"
        guarded = [text for _, bound in guards for text in bound]
    statement = f"SELECT value {_REPORTS} {guard} ORDER BY sequence DESC"
    for (text,) in connection.execute(statement, (number, *guarded)):
        for name, value in named_values(parsed(text)).items():
            if name in missing:
                values[name] = value
                missing -= {name}
        if not missing:
            break
    return values


def read_family_metrics(
    db: Database, families: Sequence[FamilyRow], names: Collection[str]
) -> dict[int, dict[str, Json]]:
    """Return the mean of each metric over the repeats of a family that succeeded and have a number there."""
    if not names or not families:
        return {family.sequence_id: {} for family in families}
    rows = db.rows("SELECT sequence_id FROM trials WHERE status = ?", (TrialStatus.SUCCEEDED.value,))
    succeeded = {number for (number,) in rows}
    repeats = [number for family in families for number in family.repeats.trials if number in succeeded]
    values = read_metrics(db, repeats, names)
    return {
        family.sequence_id: dict(
            _means([values[one] for one in family.repeats.trials if one in values], names)
        )
        for family in families
    }


def _means(several: Sequence[Mapping[str, Json]], names: Collection[str]) -> Iterator[tuple[str, float]]:
    for name in names:
        numbers = [number_in(one[name]) for one in several if name in one]
        if numbers := [number for number in numbers if not math.isnan(number)]:
            yield name, mean(numbers)
