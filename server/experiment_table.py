"""The table that figures are drawn from, read from the store of an experiment."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from ..protocol import objectives_of
from ..store.reading import ExperimentView, TrialRow, plain
from .figures import (
    MOST_TRIALS,
    Curve,
    ExperimentTable,
    Importance,
    Objective,
    Outline,
    Span,
    TrialRecord,
    chosen_numbers,
    dimensions_of,
    importance,
    joined,
)

_CURVES = 200
_POINTS = 100
_SCHEDULES = 100
# The status, which gives the colour, of attempts that were not the last of their trial.
_OUTCOMES: Mapping[str, str] = {"retried": "FAILED", "paused": "PAUSED"}
_STARTED = (
    "SELECT sequence_id, coalesce(agent, ''), start_time, end_time, {} FROM {} WHERE start_time IS NOT NULL"
)
_ATTEMPTS = (
    f"{_STARTED.format('outcome', 'attempts')} UNION ALL {_STARTED.format('status', 'trials')} ORDER BY 3, 1"
)


def read_table(
    view: ExperimentView, *, curves: int = _CURVES, attempts: bool = False, schedules: bool = False
) -> ExperimentTable:
    """Return the trials of an experiment, and the thinned intermediate results of at most `curves` of them.

    Memory is bounded: of more than 5,000 trials the table has those that `Outline.chosen` chooses. The curves are those
    of the best trials, and others evenly over time. With `attempts`, all attempts are included as spans, with
    `schedules` those of at most 100 trials of a population. Raise `StoreError` if the experiment cannot be read.
    """
    config, summary = view.config(), view.summary()
    metrics = objectives_of(config.get("objectives") or [{"direction": "minimize"}])
    objectives = [one for one in metrics if one.direction is not None]
    limits = [one for one in metrics if one.is_limited]
    names = [one.name for one in metrics]
    outline = Outline.of(names, view.outline(names))
    rows = view.numbered(sorted(outline.chosen(objectives, limits)))
    trials = list(map(_record, rows))
    reported = {row.sequence_id for row in rows if row.intermediate_results}
    families, outcomes = None, None
    if view.repeats() > 1:
        outcomes = Outline.of(names, view.outline(names, of_families=True))
        chosen = sorted(outcomes.chosen(objectives, limits))
        families = list(map(_record, view.families(chosen)))
    return ExperimentTable.of(
        summary.name or summary.id,
        objectives,
        trials,
        dimensions_of(config.get("searchSpace"), config.get("constraints") or ()),
        outline=outline,
        families=families,
        outcomes=outcomes,
        curves=_curves(view, [one for one in trials if one.number in reported], objectives[0], curves),
        curve_count=(view.database.row("SELECT count(*) FROM trials WHERE next_sequence > 0") or (0,))[0],
        spans=_spans(view, outline, outline.new_bests_by_end(objectives[0], limits)) if attempts else (),
        schedules=view.schedules(chosen_numbers(trials, objectives[0], _SCHEDULES)) if schedules else (),
        limits=limits,
        experiment_id=summary.id,
        now=time.time() if summary.is_running else None,
    )


def read_importance(view: ExperimentView, objective: str | None) -> Importance:
    """Return how much each parameter matters for an objective (None: the first).

    Raise `StoreError` if the experiment cannot be read, and `KeyError` for an unknown objective.
    """
    return importance(read_table(view, curves=0), objective)


def _record(row: TrialRow) -> TrialRecord:
    """Return a trial for figures, which have no place for NaN and infinities."""
    values: dict[str, float | None] = plain(row.values)
    return TrialRecord(
        number=row.sequence_id,
        status=row.status,
        parameters=plain(row.parameters) if isinstance(row.parameters, Mapping) else {},
        values={name: value for name, value in values.items() if value is not None},
        last=plain(row.last),
        start_time=plain(row.start_time),
        end_time=plain(row.end_time),
        seconds=plain(row.duration),
        worker=row.agent or "",
        reason=row.reason,
        trial_id=row.trial_id,
        source=row.parameter_source or "algorithm",
    )


def _curves(
    view: ExperimentView, trials: Sequence[TrialRecord], objective: Objective, most: int
) -> list[Curve]:
    numbers = chosen_numbers(trials, objective, most) if most and trials else []
    curves = view.curves(numbers, objective.name, _POINTS) if numbers else []
    return [
        Curve(
            curve.sequence_id,
            curve.sequences,
            [math.nan if value is None else value for value in curve.values],
        )
        for curve in curves
    ]


def _spans(view: ExperimentView, outline: Outline, apart: set[int]) -> list[Span]:
    """Return the attempts that started; of too many, consecutive ones are joined, except those of trials in `apart`."""
    with view.database.connection() as connection:
        spans = (
            Span(number=number, worker=agent, start=start, end=end, status=_OUTCOMES.get(outcome, outcome))
            for number, agent, start, end, outcome in connection.execute(_ATTEMPTS)
        )
        return list(spans) if len(outline) <= MOST_TRIALS else joined(spans, apart)
