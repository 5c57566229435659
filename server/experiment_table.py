"""The table that figures are drawn from, read from the store of an experiment."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..protocol import objectives_of
from ..store.reading import ExperimentView, FamilyRow, TrialRow, numbers_in, plain
from ..telling import code_changes
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
_MOST_METRICS = 100  # whose numbers are read: memory is bounded
# The status, which gives the colour, of attempts that were not the last of their trial.
_OUTCOMES: Mapping[str, str] = {"retried": "FAILED", "paused": "PAUSED"}
_STARTED = (
    "SELECT sequence_id, coalesce(agent, ''), start_time, end_time, {} FROM {} WHERE start_time IS NOT NULL"
)
_ATTEMPTS = (
    f"{_STARTED.format('outcome', 'attempts')} UNION ALL {_STARTED.format('status', 'trials')} ORDER BY 3, 1"
)


def read_table(
    view: ExperimentView,
    *,
    curves: int = _CURVES,
    metric: str | None = None,
    step: int | None = None,
    attempts: bool = False,
    schedules: bool = False,
) -> ExperimentTable:
    """Return the trials of an experiment, and the thinned intermediate results of at most `curves` of them.

    Memory is bounded: of more than 5,000 trials the table has those that `Outline.chosen` chooses, and of the numbers
    that trials report, those of the first 100 names. The curves are those of the best trials, and others evenly
    over time, in the first objective or in a `metric` that trials report. With a `step`, the values of the trials are
    those of their intermediate result of that number, from 1. With `attempts`, all attempts are included as spans, with
    `schedules` those of at most 100 trials of a population.

    Raise `StoreError` if the experiment cannot be read, `KeyError` for a metric that no trial has reported, and
    `ValueError` for a step below 1.
    """
    if step is not None and step < 1:
        raise ValueError(f"step has to be at least 1, which is the first intermediate result, not {step}")
    config, summary = view.config(), view.summary()
    metrics = objectives_of(config.get("objectives") or [{"direction": "minimize"}])
    objectives = [one for one in metrics if one.direction is not None]
    limits = [one for one in metrics if one.is_limited]
    names = [one.name for one in metrics]
    outline = Outline.of(names, view.outline(names))
    rows = view.numbered(sorted(outline.chosen(objectives, limits)))
    reported = reported_numbers(view, rows, names, step)
    trials = [_record(row, reported[row.sequence_id]) for row in rows]
    families, outcomes = None, None
    if view.repeats() > 1:
        outcomes = Outline.of(names, view.outline(names, of_families=True))
        chosen = sorted(outcomes.chosen(objectives, limits))
        families = [_family_record(row, reported) for row in view.families(chosen)]
    table = ExperimentTable.of(
        summary.name or summary.id,
        objectives,
        trials,
        dimensions_of(config.get("searchSpace"), config.get("constraints") or ()),
        outline=outline,
        families=families,
        outcomes=outcomes,
        spans=_spans(view, outline, outline.new_bests_by_end(objectives[0], limits)) if attempts else (),
        schedules=view.schedules(chosen_numbers(trials, objectives[0], _SCHEDULES)) if schedules else (),
        limits=limits,
        experiment_id=summary.id,
        now=time.time() if summary.is_running else None,
        step=step,
        code_changes=code_changes(view.code_versions()),
    )
    return _with_curves(view, table, table.metric(metric), curves)


def read_importance(view: ExperimentView, objective: str | None) -> Importance:
    """Return how much each parameter matters for an objective (None: the first).

    Raise `StoreError` if the experiment cannot be read, and `KeyError` for an unknown objective.
    """
    return importance(read_learnable(view, objective), objective)


def read_learnable(view: ExperimentView, metric: str | None = None) -> ExperimentTable:
    """Return the table that `importance` needs: with curves only if early-stopped trials are compared by them.

    Raise what `read_table` does.
    """
    table = read_table(view, metric=metric, curves=0)
    if all(trial.status != "EARLY_STOPPED" for trial in table.trials):
        return table
    return _with_curves(view, table, table.metric(metric), _CURVES)


def curve_metrics(view: ExperimentView, numbers: Sequence[int]) -> list[str]:
    """Return the names of what trials reported on their way, the main objective first."""
    main = view.main_objective()
    reported = {name for values in view.latest(numbers).values() for name in values}
    return [main, *sorted(reported - {main})]


def reported_numbers(
    view: ExperimentView, rows: Sequence[TrialRow], objectives: Sequence[str], step: int | None = None
) -> dict[int, dict[str, float]]:
    """Return the numbers of the last results of each trial, or of one step, by name: the `objectives` and some more."""
    main, names = view.main_objective(), {name: name for name in objectives}
    sequence = None if step is None else step - 1
    latest = view.latest([row.sequence_id for row in rows if row.intermediate_results], sequence)
    found = dict[int, dict[str, float]]()
    for row in rows:
        final = {} if step is not None or row.final is None else numbers_in(row.final, main)
        report = {**latest.get(row.sequence_id, {}), **final}
        for name in report:
            if len(names) < _MOST_METRICS:
                names.setdefault(name, name)
        # One text for a name in all trials: a copy in each would take more room than the numbers.
        found[row.sequence_id] = {
            names[name]: value for name, value in report.items() if name in names and math.isfinite(value)
        }
    return found


def _family_record(row: FamilyRow, reported: Mapping[int, Mapping[str, float]]) -> TrialRecord:
    """Return a family for figures: what its repeats have reported are means, too."""
    repeats = [reported[number] for number in row.repeats.trials if number in reported]
    return replace(_record(row, _means(repeats)), repeats=row.repeats.count)


def _means(reports: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each number over the trials that report it.

    >>> _means([{"loss": 1.0, "ms": 4.0}, {"loss": 2.0}])
    {'loss': 1.5, 'ms': 4.0}
    """
    names = dict.fromkeys(name for report in reports for name in report)
    columns = {name: [report[name] for report in reports if name in report] for name in names}
    return {name: math.fsum(column) / len(column) for name, column in columns.items()}


def _record(row: TrialRow, reported: Mapping[str, float]) -> TrialRecord:
    """Return a trial for figures, which have no place for NaN and infinities."""
    values: dict[str, float | None] = plain(row.values)
    return TrialRecord(
        number=row.sequence_id,
        status=row.status,
        parameters=plain(row.parameters) if isinstance(row.parameters, Mapping) else {},
        values={name: value for name, value in values.items() if value is not None},
        reported=reported,
        start_time=plain(row.start_time),
        end_time=plain(row.end_time),
        seconds=plain(row.duration),
        worker=row.agent or "",
        reason=row.reason,
        trial_id=row.trial_id,
        source=row.parameter_source or "algorithm",
        reports=row.intermediate_results,
        code=row.code or "",
    )


def _with_curves(
    view: ExperimentView, table: ExperimentTable, metric: Objective, most: int
) -> ExperimentTable:
    """Return the table with the curves of at most so many trials: the best ones, and others evenly over time."""
    goal = table.objectives[0] if metric.direction is None else metric
    reporting = [trial for trial in table.trials if trial.reports]
    numbers = chosen_numbers(reporting, goal, most) if most and reporting else []
    curves = view.curves(numbers, metric.name, _POINTS) if numbers else []
    drawn = [
        Curve(
            curve.sequence_id,
            curve.sequences,
            [math.nan if value is None else value for value in curve.values],
        )
        for curve in curves
    ]
    (count,) = view.database.row("SELECT count(*) FROM trials WHERE next_sequence > 0") or (0,)
    return table.with_curves(drawn, metric.name, count)


def _spans(view: ExperimentView, outline: Outline, apart: set[int]) -> list[Span]:
    """Return the attempts that started; of too many, consecutive ones are joined, except those of trials in `apart`."""
    with view.database.connection() as connection:
        spans = (
            Span(number=number, worker=agent, start=start, end=end, status=_OUTCOMES.get(outcome, outcome))
            for number, agent, start, end, outcome in connection.execute(_ATTEMPTS)
        )
        return list(spans) if len(outline) <= MOST_TRIALS else joined(spans, apart)
