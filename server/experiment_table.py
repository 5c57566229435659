"""The table that figures are drawn from, read from the store of an experiment."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..protocol import objectives_of
from ..store.reading import ExperimentView, TrialQuery, plain
from .figures import Curve, ExperimentTable, Objective, Span, TrialRecord, chosen_numbers, dimensions_of

__all__ = ["read_table"]

_CURVES = 200
_POINTS = 100
# The status, which has a colour, of attempts that were not the last of their trial.
_OUTCOMES: Mapping[str, str] = {"retried": "FAILED", "paused": "PAUSED"}


def read_table(view: ExperimentView, *, curves: int = _CURVES, attempts: bool = False) -> ExperimentTable:
    """Return all trials of an experiment, and the thinned intermediate results of at most `curves` of them.

    These are the best trials, and others evenly over time. With `attempts`, earlier attempts are included as spans.
    Raise `StoreError` if the experiment cannot be read.
    """
    config, summary = view.config(), view.summary()
    outcomes = objectives_of(config.get("objectives") or [{"direction": "minimize"}])
    objectives = [one for one in outcomes if one.direction is not None]
    rows = view.trials(TrialQuery(limit=None)).trials
    trials = [_record(plain(row)) for row in rows]  # figures have no place for NaN and infinities
    reported = {row["sequence_id"] for row in rows if row["intermediate_results"]}
    return ExperimentTable.of(
        summary["name"] or summary["id"],
        objectives,
        trials,
        dimensions_of(config.get("searchSpace"), config.get("constraints") or ()),
        families=[_record(plain(row)) for row in view.families()] if view.repeats() > 1 else None,
        curves=_curves(view, [one for one in trials if one.number in reported], objectives[0], curves),
        curve_count=len(reported),
        spans=_spans(view) if attempts else (),
        limits=[one for one in outcomes if one.is_limited],
        experiment_id=summary["id"],
        now=time.time() if summary["is_running"] else None,
    )


def _record(row: Mapping[str, Any]) -> TrialRecord:
    return TrialRecord(
        number=row["sequence_id"],
        status=row["status"],
        parameters=row["parameters"] if isinstance(row["parameters"], Mapping) else {},
        values={name: value for name, value in row["values"].items() if value is not None},
        last=row["last"],
        start_time=row["start_time"],
        end_time=row["end_time"],
        worker=row["agent"] or "",
        reason=row["reason"],
        trial_id=row["trial_id"],
        source=row["parameter_source"] or "algorithm",
    )


def _curves(
    view: ExperimentView, trials: Sequence[TrialRecord], objective: Objective, most: int
) -> list[Curve]:
    numbers = chosen_numbers(trials, objective, most) if most and trials else []
    found = view.curves(numbers, objective.name, _POINTS) if numbers else []
    return [
        Curve(one.sequence_id, one.sequences, [float("nan") if v is None else v for v in one.values])
        for one in found
    ]


def _spans(view: ExperimentView) -> list[Span]:
    """Return the attempts that started and were not the last of their trial."""
    rows = view.database.rows(
        "SELECT sequence_id, agent, start_time, end_time, outcome FROM attempts WHERE start_time IS NOT NULL"
    )
    return [
        Span(number=number, worker=agent or "", start=start, end=end, status=_OUTCOMES.get(outcome, "FAILED"))
        for number, agent, start, end, outcome in rows
    ]
