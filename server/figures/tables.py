"""Plain tables of an experiment: everything a figure needs, independent of where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ...protocol import Json, Objective
from .dimensions import Dimension, Numbers, completed, drawable, inferred, number_or_none
from .outline import Outline, Span, joined, metrics_of

if TYPE_CHECKING:
    from ...store.reading import Schedule

Named = TypeVar("Named", Objective, Dimension)


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial as figures see it; times are seconds since the epoch.

    `parameters` are those of the tuner, with nested choices. `values` has the final result of each objective that has
    one. `reported` has every number of its last results, by name: those of the last intermediate one and, over these,
    of the final one; in a table of one step, those of that intermediate result. `reports` is the number of its
    intermediate results. `source` says where the parameters come from: the `algorithm`, the user or the configuration.
    A family has the means of that many `repeats`.
    """

    number: int
    status: str
    parameters: Mapping[str, Json]
    values: Mapping[str, float] = field(default_factory=dict)
    reported: Mapping[str, float] = field(default_factory=dict)
    start_time: float | None = None
    end_time: float | None = None
    seconds: float | None = None  # for which all its attempts ran, without pauses
    worker: str = ""
    reason: str = ""
    trial_id: str = ""
    source: str = "algorithm"
    reports: int = 0
    repeats: int = 0
    code: str = ""  # the digest of what it ran

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

    `configurations` are the trials, or the families of repeats, each like a trial with the means of its repeats. A
    table has at most about 5,000 of either; `outline` has all trials, and `outcomes` all configurations.

    `curves` may belong to some trials only; they are of the `curve_metric`, and `curve_count` is how many trials have
    one. `metrics` are the names of what trials report beside the objectives and what is limited. With a `step`, the
    values of the trials are those of their intermediate result of that number, from 1, however they ended.

    `spans` are the attempts of all trials; with more than 5,000 trials, attempts that follow each other are joined.
    `schedules` are those of the trials of a population. `limits` are the limits of metrics. `now` is where attempts end
    that still run, in seconds since the epoch. `code_changes` say what changed in the code, by the first
    trial after it.

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
    curve_metric: str = ""
    spans: tuple[Span, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    now: float | None = None
    limits: tuple[Objective, ...] = ()
    metrics: tuple[str, ...] = ()
    step: int | None = None
    experiment_id: str = ""
    code_changes: Mapping[int, str] = field(default_factory=dict)

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
        schedules: Sequence[Schedule] = (),
        now: float | None = None,
        limits: Sequence[Objective] = (),
        step: int | None = None,
        experiment_id: str = "",
        code_changes: Mapping[int, str] | None = None,
    ) -> ExperimentTable:
        """Return a table whose dimensions cover the trials; without `dimensions` they are inferred from the trials.

        `trials` are all trials, and `spans` their attempts except the last of each. If the `outline` of all trials is
        given, `trials` may be some of them, and `spans` are all attempts. The same holds for `outcomes` and `families`.
        The `curves` are those of the first objective; `with_curves` takes others.
        """
        goals = tuple(objectives) or (Objective(),)
        if outline is None:
            spans = [*spans, *_last_attempts(trials)]
            outline, trials = _chosen(trials, goals, limits)
            if len(trials) < len(outline):
                in_order = sorted(spans, key=lambda span: span.start)
                spans = joined(in_order, outline.new_bests_by_end(goals[0], limits))
        if families is not None and outcomes is None:
            outcomes, families = _chosen(families, goals, limits)
        points = [trial.parameters for trial in trials]
        axes = inferred(points) if not dimensions else [completed(one, points) for one in dimensions]
        reported = {name for trial in trials for name in trial.reported}
        table = cls(
            name=name,
            experiment_id=experiment_id,
            objectives=goals,
            dimensions=tuple(axes),
            trials=tuple(trials),
            configurations=tuple(trials if families is None else families),
            outline=outline,
            outcomes=outcomes or outline,
            spans=tuple(spans),
            schedules=tuple(schedules),
            now=now,
            limits=tuple(limits),
            metrics=tuple(sorted(reported.difference(metrics_of(goals, limits)))),
            step=step,
            code_changes=code_changes or {},
        )
        return table.with_curves(curves, goals[0].name, curve_count)

    def with_curves(self, curves: Sequence[Curve], metric: str, count: int | None = None) -> ExperimentTable:
        """Return the table with the curves of a metric; `count` is how many trials have one, by default these."""
        return replace(
            self,
            curves=tuple(Curve(one.number, one.steps, drawable(one.values)) for one in curves),
            curve_count=len(curves) if count is None else count,
            curve_metric=metric,
        )

    def value(self, trial: TrialRecord, metric: str) -> float | None:
        """Return what a trial has reached in a metric, if that is a finite number.

        That is its final result, or its last one if it was stopped early; of other trials nothing counts. In a table of
        a step it is the result there, of any trial.
        """
        if self.step is None and trial.status == "SUCCEEDED":
            return number_or_none(trial.values.get(metric, trial.reported.get(metric)))
        is_shown = self.step is not None or trial.status == "EARLY_STOPPED"
        return number_or_none(trial.reported.get(metric)) if is_shown else None

    def violates(self, trial: TrialRecord) -> bool:
        """Return whether what a trial has reached is known to violate a limit."""
        if self.step is None and trial.status == "SUCCEEDED":
            return not self.keeps_limits(trial)
        values = [(one, self.value(trial, one.name)) for one in self.limits]
        return any(value is not None and one.violation(value) > 0 for one, value in values)

    def keeps_limits(self, trial: TrialRecord) -> bool:
        """Return whether a trial that succeeded keeps the limits, so that it can be the best."""
        values = [(one, trial.value(one.name)) for one in self.limits]
        return all(value is not None and one.violation(value) == 0 for one, value in values)

    def objective(self, name: str | None = None) -> Objective:
        """Return an objective by its name, or the first; raise `KeyError` with the known names."""
        return self.objectives[0] if name is None else _named(name, self.objectives, "objective")

    def metric(self, name: str | None = None) -> Objective:
        """Return the first objective, or another one, or any other metric that trials report, by its name.

        The other metrics have no direction. Raise `KeyError` with the known names.
        """
        limited = [one for one in self.limits if one.direction is None]
        others = [Objective(name=other, direction=None) for other in self.metrics]
        known = [*self.objectives, *limited, *others]
        return self.objectives[0] if name is None else _named(name, known, "metric")

    def dimension(self, name: str) -> Dimension:
        """Return a dimension by its name; raise `KeyError` with the known names."""
        return _named(name, self.dimensions, "parameter")

    @property
    def left_out(self) -> str:
        """How many configurations the table has, if not all."""
        return left_out(len(self.configurations), len(self.outcomes))

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


def left_out(drawn: int, count: int, noun: str = "trials") -> str:
    """Return how many are drawn, if not all.

    >>> left_out(7, 1234), left_out(7, 7)
    ('7 of 1,234 trials are shown', '')
    """
    return f"{drawn:,} of {count:,} {noun} are shown" if drawn < count else ""


def _named(name: str, several: Sequence[Named], what: str) -> Named:
    for one in several:
        if one.name == name:
            return one
    raise KeyError(f"there is no {what} '{name}': {[one.name for one in several]}")


def _chosen(
    trials: Sequence[TrialRecord], objectives: Sequence[Objective], limits: Sequence[Objective]
) -> tuple[Outline, Sequence[TrialRecord]]:
    """Return the outline of all trials, and the trials that are shown."""
    metrics = metrics_of(objectives, limits)
    rows = [(one.number, one.status, one.end_time, *map(one.value, metrics)) for one in trials]
    outline = Outline.of(metrics, [rows])
    numbers = outline.chosen(objectives, limits)
    return outline, [one for one in trials if one.number in numbers]


def _last_attempts(trials: Iterable[TrialRecord]) -> Iterator[Span]:
    for trial in trials:
        if trial.start_time is not None:
            yield Span(
                number=trial.number,
                worker=trial.worker,
                start=trial.start_time,
                end=trial.end_time,
                status=trial.status,
            )


def chosen_numbers(trials: Sequence[TrialRecord], objective: Objective, limit: int) -> list[int]:
    """Return the numbers of at most `limit` trials to show: the best tenth, and others evenly over time.

    >>> trials = [TrialRecord(n, "SUCCEEDED", {}, {"default": -n}) for n in range(100)]
    >>> chosen_numbers(trials, Objective(), 10)
    [0, 12, 24, 36, 49, 61, 73, 85, 98, 99]
    """
    in_order = sorted(trials, key=lambda trial: trial.number)
    values = [trial.value(objective.name) for trial in in_order]
    losses = objective.sign * np.array(values, dtype=np.float64)
    return [in_order[place].number for place in chosen_places(losses, limit)]


def chosen_places(losses: Numbers, limit: int) -> list[int]:
    """Return at most `limit` places of losses, shape (n,), in order: those of the best tenth, and others evenly.

    >>> chosen_places(np.array([5.0, 4.0, np.nan, 1.0, 2.0]), 3)
    [0, 3, 4]
    """
    if len(losses) <= limit:
        return list(range(len(losses)))
    known = int(np.isfinite(losses).sum())
    best = np.argsort(losses, kind="stable")[: min(max(limit // 10, 1), known)]
    others = np.setdiff1d(np.arange(len(losses)), best)
    places = others[np.linspace(0, len(others) - 1, limit - len(best)).astype(int)]
    return sorted({*best.tolist(), *places.tolist()})
