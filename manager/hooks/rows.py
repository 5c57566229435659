"""Trials, results and the experiment as plain dicts: what callbacks and stoppers are told, and tables are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import loads, parameters_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...runner import MetricRow, Trial, TrialRunner

__all__ = ["experiment_row", "result_row", "trial_row"]


def trial_row(trial: Trial, objectives: Sequence[str] = ()) -> dict[str, Any]:
    """A trial as it stands; times in seconds since the epoch.

    `value` is its value for the only objective, a dict by name for several `objectives`, None without a final result.
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


def _value(trial: Trial, objectives: Sequence[str]) -> float | dict[str, float] | None:
    if trial.values is None:
        return None
    if len(trial.values) == 1:
        return trial.values[0]
    return dict(zip(objectives, trial.values, strict=True))


def _duration(trial: Trial) -> float | None:
    if trial.start_time is None or trial.end_time is None:
        return None
    return trial.end_time - trial.start_time


def result_row(metric: MetricRow) -> dict[str, Any]:
    """One reported result: what was reported (a bare number as `default`), and what it belongs to.

    A reported key never replaces one of ours, which stoppers rely on. A true `done` that was reported counts: with
    `stop={"done": True}` a trial can say itself that it is done.
    """
    trial, value = metric.trial, loads(metric.value)
    reported = value if isinstance(value, dict) else {"default": value}
    is_final = metric.kind == "FINAL"
    began = trial.start_time if trial.start_time is not None else metric.time
    return {
        **reported,
        "trial_id": trial.trial_id,
        "sequence_id": trial.sequence_id,
        "parameters": parameters_of(trial.record),
        "training_iteration": max(1, trial.next_sequence) if is_final else metric.sequence + 1,
        "attempt": metric.attempt,
        "done": is_final or bool(reported.get("done")),
        "time": metric.time,
        "time_total_s": metric.time - began,
    }


def experiment_row(runner: TrialRunner, folder: Path, now: float) -> dict[str, Any]:
    """The experiment as it stands; `best` is a list with one trial, or the Pareto front of several objectives."""
    names = [objective.name for objective in runner.objectives]
    return {
        "id": runner.experiment_id,
        "status": runner.status.value,
        "reason": runner.reason,
        "folder": str(folder),
        "counts": {status.value: count for status, count in runner.counts.items() if count},
        "best": [trial_row(trial, names) for trial in runner.best.front],
        "run_time": runner.elapsed(now),
    }
