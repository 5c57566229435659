"""Trials, results and the experiment as plain dicts, for callbacks, stoppers and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import loads, main_objective, number_in, parameters_of, with_default

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...protocol import Objective
    from ...runner import MetricRow, Trial, TrialRunner


def trial_row(trial: Trial, objectives: Sequence[Objective] = ()) -> dict[str, Any]:
    """Return a trial; times are seconds since the epoch.

    `value` is its value for the only objective, a dict by name for several `objectives`, None without a final result.
    Metrics that are only limited are in `final`.
    """
    return {
        "trial_id": trial.trial_id,
        "sequence_id": trial.sequence_id,
        "status": trial.status.value,
        "parameters": parameters_of(trial.record),
        "value": _value(trial, objectives),
        "final": None if trial.final is None else loads(trial.final),
        "attempt": trial.attempt,
        "intermediate_results": trial.next_sequence,
        "start_time": trial.start_time,
        "end_time": trial.end_time,
        "duration": _duration(trial),
        "reason": trial.reason,
        "failure_kind": None if trial.kind is None else trial.kind.value,
        "error": trial.error,
    }


def _value(trial: Trial, objectives: Sequence[Objective]) -> float | dict[str, float] | None:
    if trial.values is None:
        return None
    if len(trial.values) == 1:
        return trial.values[0]
    pairs = zip(objectives, trial.values, strict=True)
    values = {one.name: value for one, value in pairs if one.direction is not None}
    return values if len(values) > 1 else next(iter(values.values()))


def _duration(trial: Trial) -> float | None:
    if trial.start_time is None or trial.end_time is None:
        return None
    return trial.end_time - trial.start_time


def result_row(metric: MetricRow, objectives: Sequence[Objective] = ()) -> dict[str, Any]:
    """Return one reported result: what was reported, and the trial and its progress.

    The main one of the `objectives` is also called `default`, and a bare number has both names.

    A reported key never replaces one of ours, which stoppers rely on. A reported `done` that is true, or 1, counts:
    with `stop={"done": True}` a trial can end itself.
    """
    trial, value = metric.trial, loads(metric.value)
    main = main_objective(objectives).name
    reported = with_default(value if isinstance(value, dict) else {main: value}, main)
    is_final = metric.kind == "FINAL"
    began = trial.start_time if trial.start_time is not None else metric.time
    return {
        **reported,
        "trial_id": trial.trial_id,
        "sequence_id": trial.sequence_id,
        "parameters": parameters_of(trial.record),
        "training_iteration": max(1, trial.next_sequence) if is_final else metric.sequence + 1,
        "attempt": metric.attempt,
        "done": is_final or number_in(reported, "done") > 0,
        "time": metric.time,
        "time_total_s": metric.time - began,
    }


def experiment_row(runner: TrialRunner, folder: Path, now: float) -> dict[str, Any]:
    """Return the experiment; `best` is a list with one trial, or the Pareto front of several objectives."""
    return {
        "id": runner.experiment_id,
        "status": runner.status.value,
        "reason": runner.reason,
        "folder": str(folder),
        "counts": {status.value: count for status, count in runner.counts.items() if count},
        "best": [trial_row(trial, runner.objectives) for trial in runner.best.front],
        "run_time": runner.elapsed(now),
    }
