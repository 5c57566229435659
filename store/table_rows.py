"""Turns a tick into rows of the tables, and rows of the table `trials` into trials. Every trial pays for both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from types import MappingProxyType
from typing import Any

from ..runner import AttemptRow, Cause, Changes, FailureKind, MetricRow, Trial, TrialStatus, Verdict
from .dispatcher_record import SavedState

# In the order of the fields of `Trial`, so that a row becomes a trial without being sorted: a resume makes all of them.
_FIELDS = tuple(field.name for field in fields(Trial))
_COLUMNS = tuple(name for name in _FIELDS if name not in ("values", "story"))
_STATUS, _ID, _GPUS, _VERDICT, _KIND, _FAILED = map(
    _COLUMNS.index, ("status", "parameter_id", "gpus", "verdict", "kind", "failed")
)
_VALUES = _FIELDS.index("values")
_STATUSES: Mapping[str, TrialStatus] = MappingProxyType({status.value: status for status in TrialStatus})
# What never changes once a trial is made.
_FIXED = ("sequence_id", "trial_id", "parameter_id", "created")

SELECT_TRIALS = f"SELECT {', '.join(_COLUMNS)} FROM trials ORDER BY sequence_id"
"""All rows, for `row_to_trial`."""

_UPSERT_TRIAL = (
    f"INSERT INTO trials ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
    " ON CONFLICT (sequence_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in _FIXED)
)
_INSERT_METRIC = "INSERT OR IGNORE INTO metrics VALUES (?, ?, ?, ?, ?, ?, 0)"
_SUPERSEDE = (
    "UPDATE metrics SET superseded = 1 WHERE sequence_id = ? AND attempt <= ?"
    " AND (kind = 'FINAL' OR sequence >= ?)"
)
_INSERT_ATTEMPT = "INSERT OR IGNORE INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_CHECKPOINT = "INSERT OR REPLACE INTO dispatcher_checkpoints VALUES (?, ?, ?, ?)"
_INSERT_VALUE = "INSERT OR IGNORE INTO objective_values VALUES (?, ?, ?)"


@dataclass(slots=True, kw_only=True)
class StoreTick:
    """All that one turn of the manager's loop changes."""

    changes: Changes
    commands: Sequence[tuple[int, str, str]] = ()
    replies: Sequence[tuple[int, str, str]] = ()
    status: str = ""
    reason: str = ""
    error: str = ""
    run_time: float = 0.0
    end_time: float | None = None
    snapshot: str = "{}"
    dispatcher_checkpoints: Sequence[SavedState] = ()


def rows_of(tick: StoreTick, objectives: Sequence[str]) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """Yield the statements of a tick that have rows, each with its rows."""
    changes = tick.changes
    trials = changes.trials.values()
    if trials:
        yield _UPSERT_TRIAL, map(_trial_to_row, trials)
    if changes.metrics:
        yield _INSERT_METRIC, map(_metric_to_row, changes.metrics)
    if changes.superseded:
        yield _SUPERSEDE, changes.superseded
    if changes.attempts:
        yield _INSERT_ATTEMPT, map(_attempt_to_row, changes.attempts)
    if values := [
        (trial.sequence_id, name, value)
        for trial in trials
        if trial.values
        for name, value in zip(objectives, trial.values, strict=False)
    ]:
        yield _INSERT_VALUE, values
    if changes.code:
        yield "INSERT OR IGNORE INTO code_versions VALUES (?, ?)", changes.code.items()
    if changes.exports:
        yield "INSERT OR REPLACE INTO exports VALUES (?, ?, ?)", changes.exports
    if tick.commands:
        yield "INSERT INTO commands VALUES (?, ?, ?)", tick.commands
    if tick.replies:
        yield "INSERT INTO replies VALUES (?, ?, ?)", tick.replies
    if tick.dispatcher_checkpoints:
        yield _INSERT_CHECKPOINT, map(astuple, tick.dispatcher_checkpoints)


def _trial_to_row(trial: Trial) -> tuple[Any, ...]:
    """Return the row of a trial; its values have a table of their own."""
    verdict = trial.verdict
    return (
        trial.trial_id,
        trial.sequence_id,
        _id_to_text(trial.parameter_id),
        trial.record,
        trial.created,
        str(trial.status),
        trial.attempt,
        trial.slot,
        trial.agent,
        None if trial.gpus is None else json.dumps(trial.gpus),
        trial.start_time,
        trial.end_time,
        trial.next_sequence,
        trial.finals,
        trial.final,
        None if verdict is None else json.dumps([verdict.cause, verdict.reason, verdict.kind]),
        trial.reason,
        trial.kind,
        trial.exit_code,
        trial.pid,
        trial.error,
        trial.next_unsent,
        trial.first_sequence,
        trial.checkpoint,
        trial.checkpoint_sequence,
        trial.copy_of,
        trial.budget,
        json.dumps(trial.failed) if trial.failed else None,
        trial.resume,
        trial.user_retries,
        trial.code,
    )


def _metric_to_row(metric: MetricRow) -> tuple[Any, ...]:
    return metric.trial.sequence_id, metric.kind, metric.sequence, metric.attempt, metric.value, metric.time


def _attempt_to_row(attempt: AttemptRow) -> tuple[Any, ...]:
    return tuple(getattr(attempt, name) for name in AttemptRow.__slots__)


def row_to_trial(row: tuple[Any, ...]) -> Trial:
    """Return the trial of a row of `SELECT_TRIALS`, without its values.

    >>> record = '{"parameters": {"x": 1}}'
    >>> trial = Trial(trial_id="AbCdE", sequence_id=7, parameter_id=3, record=record, created=12.5, gpus=(0, 1))
    >>> row_to_trial(_trial_to_row(trial)) == trial
    True
    """
    values = list(row)
    values[_STATUS] = _STATUSES[values[_STATUS]]
    values[_ID] = _text_to_id(values[_ID])
    if values[_GPUS] is not None:
        values[_GPUS] = tuple(json.loads(values[_GPUS]))
    if values[_VERDICT] is not None:
        cause, reason, kind = json.loads(values[_VERDICT])
        values[_VERDICT] = Verdict(Cause(cause), reason, None if kind is None else FailureKind(kind))
    if values[_KIND] is not None:
        values[_KIND] = FailureKind(values[_KIND])
    values[_FAILED] = {} if values[_FAILED] is None else json.loads(values[_FAILED])
    values.insert(_VALUES, None)
    return Trial(**dict(zip(_FIELDS, values, strict=False)))


def _id_to_text(parameter_id: int | str | None) -> str:
    # Nearly always a number, whose text is its JSON.
    return str(parameter_id) if type(parameter_id) is int else json.dumps(parameter_id)


def _text_to_id(text: str) -> int | str | None:
    return int(text) if text.isdecimal() else json.loads(text)
