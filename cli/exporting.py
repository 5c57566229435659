"""Trials as plain objects: what `export` and `trial show --json` print."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from ..protocol import parameters_of
from ..runner import AttemptRow, Trial
from ..store import ExperimentRow, Store
from ..store.reading import flat

__all__ = ["attempt_object", "csv_rows", "experiment_object", "metrics_of", "plain_number", "trial_object"]

Row = tuple[int, str, int, int, str, float]
_FIXED = ("sequence_id", "id", "status", "start_time", "end_time")


def experiment_object(row: ExperimentRow, folder: str) -> dict[str, Any]:
    """An experiment without its trials; times in seconds since the epoch."""
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "reason": row.reason,
        "folder": folder,
        "created": row.created,
        "end_time": row.end_time,
        "run_time": row.run_time,
        "config": plain_number(row.config),
    }


def trial_object(trial: Trial, intermediate: list[object]) -> dict[str, Any]:
    """A trial with its results; NaN and infinities, which JSON has not, become null."""
    return {
        "id": trial.trial_id,
        "sequence_id": trial.sequence_id,
        "status": trial.status.value,
        "parameters": plain_number(parameters_of(trial.record)),
        "intermediate": [plain_number(value) for value in intermediate],
        "final": None if trial.final is None else plain_number(json.loads(trial.final)),
        "start_time": trial.start_time,
        "end_time": trial.end_time,
        "reason": trial.reason,
        "kind": trial.kind,
        "exit_code": trial.exit_code,
        "attempts": trial.attempt,
    }


def attempt_object(attempt: AttemptRow) -> dict[str, Any]:
    """An attempt that was not the trial's last."""
    return asdict(attempt)


def plain_number(value: Any) -> Any:
    """A value in which everything can be written as JSON.

    >>> plain_number({"default": float("nan"), "curve": [1.0, float("inf")]})
    {'default': None, 'curve': [1.0, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: plain_number(inner) for key, inner in value.items()}
    return [plain_number(inner) for inner in value] if isinstance(value, list) else value


def metrics_of(store: Store, sequence_id: int) -> list[object]:
    """The intermediate results of a trial that count, in order."""
    return _that_count(store.metrics(sequence_id))


def all_metrics(store: Store) -> dict[int, list[object]]:
    """The intermediate results of every trial that has any, by sequence id."""
    rows: dict[int, list[Row]] = {}
    for row in store.metrics():
        rows.setdefault(row[0], []).append(row)
    return {sequence_id: _that_count(found) for sequence_id, found in rows.items()}


def _that_count(rows: Iterable[Row]) -> list[object]:
    """A later attempt supersedes what earlier ones reported at or above its first result."""
    periodical = [
        (attempt, sequence, value) for _, kind, sequence, attempt, value, _ in rows if kind == "PERIODICAL"
    ]
    counted: dict[int, str] = {}
    current = None
    for attempt, sequence, value in sorted(periodical, key=lambda row: row[:2]):
        if attempt != current:
            counted = {number: kept for number, kept in counted.items() if number < sequence}
            current = attempt
        counted[sequence] = value
    return [json.loads(value) for value in counted.values()]


def csv_rows(trials: Iterable[Trial]) -> Iterator[list[object]]:
    """A head and one row a trial: nested parameters and results are flattened with dots.

    A parameter that is named like another column gets the prefix `parameters.`
    """
    flattened = [(trial, *_flattened(trial)) for trial in trials]
    finals = list(dict.fromkeys(name for _, _, final in flattened for name in final))
    taken = {*_FIXED, "reason", *finals}
    names = list(dict.fromkeys(name for _, parameters, _ in flattened for name in parameters))
    head = [f"parameters.{name}" if name in taken else name for name in names]
    yield [*_FIXED, *head, *finals, "reason"]
    for trial, parameters, final in flattened:
        fixed = [trial.sequence_id, trial.trial_id, trial.status.value, trial.start_time, trial.end_time]
        yield [*fixed, *(parameters.get(n) for n in names), *(final.get(n) for n in finals), trial.reason]


def _flattened(trial: Trial) -> tuple[dict[str, Any], dict[str, Any]]:
    final = {} if trial.final is None else flat(json.loads(trial.final), "final")
    return flat(parameters_of(trial.record)), final
