"""Plain tables of an experiment: everything a figure needs, independent of where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...protocol import Objective
from .dimensions import Dimension, Numbers, completed, drawable, inferred, number_or_none
from .outline import Outline, Span, joined, metrics_of


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial as figures see it; times in seconds since the epoch.

    `parameters` are as the tuner gave them, nested choices included. `values` has the final result of each objective,
    as far as there is one; `last` is the last intermediate result of a trial without a final one. `source` says where
    the parameters come from: the `algorithm`, the user, the configuration.
    """

    number: int
    status: str
    parameters: Mapping[str, Any]
    values: Mapping[str, float] = field(default_factory=dict)
    last: float | None = None
    start_time: float | None = None
    end_time: float | None = None
    seconds: float | None = None  # that it ran, over all attempts, without pauses
    worker: str = ""
    reason: str = ""
    trial_id: str = ""
    source: str = "algorithm"

    def value(self, objective: str) -> float | None:
        """Return the final result of an objective if the trial succeeded and it is a finite number."""
        return number_or_none(self.values.get(objective)) if self.status == "SUCCEEDED" else None


@dataclass(frozen=True, slots=True)
class Curve:
    """The intermediate results of one trial, shape (n,) each; NaN leaves a gap."""

    number: int
    steps: Sequence[float] | Numbers
    values: Sequence[float] | Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentTable:
    """One experiment; make it with `ExperimentTable.of`, which completes the dimensions.

    `configurations` are the trials, or the families of repeats, each like a trial with the means of its repeats. Of
    more than 5,000 there are only some; `outline` has all trials, and `outcomes` all configurations.

    `curves` may be those of some trials only, `curve_count` is the number of trials with one. `spans` are the attempts
    of all trials; of more than 5,000 trials those that follow each other are joined. `limits` are those of metrics.
    `now` is the end of what still runs, in seconds since the epoch.

    >>> trials = [TrialRecord(n, "SUCCEEDED", {"x": n / 2}, {"default": n * n}) for n in range(3)]
    >>> table = ExperimentTable.of("demo", [Objective()], trials)
    >>> [(dimension.name, dimension.low, dimension.high) for dimension in table.dimensions]
    [('x', 0.0, 1.0)]
    """

    name: str
    objectives: tuple[Objective, ...]
    dimensions: tuple[Dimension, ...]
    trials: tuple[TrialRecord, ...]
    configurations: tuple[TrialRecord, ...]
    outline: Outline
    outcomes: Outline
    curves: tuple[Curve, ...] = ()
    curve_count: int = 0
    spans: tuple[Span, ...] = ()
    now: float | None = None
    limits: tuple[Objective, ...] = ()
    experiment_id: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        objectives: Sequence[Objective],
        trials: Sequence[TrialRecord],
        dimensions: Sequence[Dimension] | None = None,
        *,
        outline: Outline | None = None,
        families: Sequence[TrialRecord] | None = None,
        outcomes: Outline | None = None,
        curves: Sequence[Curve] = (),
        curve_count: int | None = None,
        spans: Sequence[Span] = (),
        now: float | None = None,
        limits: Sequence[Objective] = (),
        experiment_id: str = "",
    ) -> ExperimentTable:
        """Return a table whose dimensions cover the trials; without `dimensions` they come from the trials.

        `spans` are the attempts before the last one of each trial. With the `outline` of all trials, `trials` are some
        of them and `spans` all attempts, and the same holds for `outcomes` and `families`.
        """
        goals = tuple(objectives) or (Objective(),)
        if outline is None:
            spans = [*spans, *_last_attempts(trials)]
            outline, trials = _chosen(trials, goals, limits)
            if len(trials) < len(outline):
                spans = joined(sorted(spans, key=_start), outline.new_bests_by_end(goals[0], limits))
        if families is not None and outcomes is None:
            outcomes, families = _chosen(families, goals, limits)
        points = [trial.parameters for trial in trials]
        found = inferred(points) if not dimensions else [completed(one, points) for one in dimensions]
        return cls(
            name=name,
            experiment_id=experiment_id,
            objectives=goals,
            dimensions=tuple(found),
            trials=tuple(trials),
            configurations=tuple(trials if families is None else families),
            outline=outline,
            outcomes=outcomes or outline,
            curves=tuple(Curve(one.number, one.steps, drawable(one.values)) for one in curves),
            curve_count=len(curves) if curve_count is None else curve_count,
            spans=tuple(spans),
            now=now,
            limits=tuple(limits),
        )

    def keeps_limits(self, trial: TrialRecord) -> bool:
        """Return whether a trial that succeeded keeps the limits, so that it can be the best."""
        values = [(one, trial.value(one.name)) for one in self.limits]
        return all(value is not None and one.violation(value) == 0 for one, value in values)

    def objective(self, name: str | None = None) -> Objective:
        """Return the objective of a name, or the first; raise `KeyError` with the known names."""
        if name is None:
            return self.objectives[0]
        for objective in self.objectives:
            if objective.name == name:
                return objective
        raise KeyError(f"there is no objective '{name}': {[one.name for one in self.objectives]}")

    def dimension(self, name: str) -> Dimension:
        """Return the dimension of a name; raise `KeyError` with the known names."""
        for dimension in self.dimensions:
            if dimension.name == name:
                return dimension
        raise KeyError(f"there is no parameter '{name}': {[one.name for one in self.dimensions]}")

    @property
    def left_out(self) -> str:
        """How many trials are shown, if not all."""
        shown, every = len(self.configurations), len(self.outcomes)
        return f"{shown:,} of {every:,} trials are shown" if shown < every else ""

    def chosen(self, names: Sequence[str] | None) -> tuple[Dimension, ...]:
        """Return the dimensions of these names, or all that vary; raise `KeyError` for an unknown name."""
        if names is not None:
            return tuple(self.dimension(name) for name in names)
        return tuple(dimension for dimension in self.dimensions if dimension.varies)

    def finished(self, objective: str) -> tuple[list[TrialRecord], Numbers]:
        """Return the configurations with a finite result of an objective, and the results, shape (n,), by number."""
        pairs = [(trial, trial.value(objective)) for trial in self.configurations]
        kept = [(trial, value) for trial, value in pairs if value is not None]
        kept.sort(key=lambda pair: pair[0].number)
        return [trial for trial, _ in kept], np.array([value for _, value in kept], dtype=np.float64)


def _chosen(
    trials: Sequence[TrialRecord], objectives: Sequence[Objective], limits: Sequence[Objective]
) -> tuple[Outline, Sequence[TrialRecord]]:
    """Return the outline of trials, and those to show for all."""
    metrics = metrics_of(objectives, limits)
    rows = [(one.number, one.status, one.end_time, *map(one.value, metrics)) for one in trials]
    outline = Outline.of(metrics, [rows])
    numbers = outline.chosen(objectives, limits)
    return outline, [one for one in trials if one.number in numbers]


def _last_attempts(trials: Iterable[TrialRecord]) -> Iterator[Span]:
    for one in trials:
        if one.start_time is not None:
            yield Span(
                number=one.number,
                worker=one.worker,
                start=one.start_time,
                end=one.end_time,
                status=one.status,
            )


def _start(span: Span) -> float:
    return span.start


def chosen_numbers(trials: Sequence[TrialRecord], objective: Objective, limit: int) -> list[int]:
    """Return the numbers of at most `limit` trials to show for all: the best tenth, and others evenly over time.

    >>> trials = [TrialRecord(n, "SUCCEEDED", {}, {"default": -n}) for n in range(100)]
    >>> chosen_numbers(trials, Objective(), 10)
    [0, 12, 24, 36, 49, 61, 73, 85, 98, 99]
    """
    if len(trials) <= limit:
        return sorted(trial.number for trial in trials)
    sign = 1.0 if objective.direction == "minimize" else -1.0
    ranked = [
        (sign * value, one.number) for one in trials if (value := one.value(objective.name)) is not None
    ]
    best = {number for _, number in sorted(ranked)[: max(limit // 10, 1)]}
    others = sorted(trial.number for trial in trials if trial.number not in best)
    places = np.linspace(0, len(others) - 1, limit - len(best)).astype(int)
    return sorted(best | {others[place] for place in places})
