"""What readers get: an experiment and its trials as dataclasses.

`to_json` writes their fields in the order in which they stand here, for the HTTP API and `--json`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ...protocol import Direction, Json, Parameters
from ...runner import ExperimentStatus


@dataclass(frozen=True, slots=True)
class Goal:
    """An objective that is optimised."""

    name: str
    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A trial in a table; times are seconds since the epoch, `duration` seconds."""

    sequence_id: int
    trial_id: str
    status: str
    created: float
    start_time: float | None
    end_time: float | None
    final: Json  # as it was reported
    reason: str
    kind: str | None
    exit_code: int | None
    attempt: int
    agent: str | None
    parameters: Json
    parameter_source: str | None
    family: int | None  # the number of the first trial with these parameters, of repeats
    repeat: int | None
    seed: int | None
    family_end: str | None
    values: dict[str, float]  # by metric
    value: float | None  # of the main objective
    intermediate_results: int
    duration: float | None  # seconds of running in all attempts, pauses left out; None while it runs
    last: float | None  # the last intermediate result
    code: str | None = None  # the digest of the code that its last attempt ran

    @property
    def seconds(self) -> float | None:
        """For how long it has run; of a trial that runs, in this attempt; None before it begins."""
        if self.duration is not None or self.start_time is None:
            return self.duration
        return max(0.0, time.time() - self.start_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An earlier attempt of a trial."""

    attempt: int
    outcome: str
    agent: str | None
    start_time: float | None
    end_time: float
    reason: str
    kind: str | None
    exit_code: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDetail(TrialRow):
    """All about a trial; only one that is read alone has `earlier_attempts`."""

    error: str | None
    gpus: list[int] | None
    pid: int | None
    budget: float | None
    checkpoint: str | None
    failed: dict[str, int] | None
    user_retries: int
    slot: int | None
    finals: int
    earlier_attempts: list[Attempt] = field(default_factory=list[Attempt])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStep:
    """A part of a training with the same parameters, which begins after `begin` results.

    `trial` made it, and called its first result number `first`. If it began with another trial's checkpoint, that is
    `copied_from`, and had `copied_at` results then.
    """

    begin: int
    parameters: Parameters
    trial: int
    first: int
    copied_from: int | None = None
    copied_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """With which parameters a trial was trained when: its `steps`, with those before a checkpoint that it copied.

    They have made `results` results so far. `own` are the steps that the trial made itself, those before a copy
    included, which count its own results, `own_results` so far.

    >>> parts = [ScheduleStep(begin=n, parameters={"lr": 0.1 / (n + 1)}, trial=3, first=n) for n in (0, 4)]
    >>> schedule = Schedule(sequence_id=3, results=9, steps=parts, own=parts, own_results=9)
    >>> [schedule.parameters_at(epoch)["lr"] for epoch in (0, 3, 4, 100)], schedule.changes
    ([0.1, 0.1, 0.02, 0.02], 1)
    """

    sequence_id: int
    results: int
    steps: Sequence[ScheduleStep]
    own: Sequence[ScheduleStep] = field(repr=False)
    own_results: int = field(repr=False)

    @property
    def changes(self) -> int:
        """How often the parameters changed."""
        return sum(one.parameters != other.parameters for one, other in pairwise(self.steps))

    def parameters_at(self, epoch: int) -> Parameters:
        """Return the parameters of an epoch, which is what makes one result, from 0; after the end those of the last.

        Raise ValueError for a negative number.
        """
        if epoch < 0:
            raise ValueError(f"there is no epoch {epoch}: the first one is 0")
        return next(step.parameters for step in reversed(self.steps) if step.begin <= epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """The trials of a family: their numbers, how many succeeded, how many there may be at most, and how it ended."""

    trials: list[int]
    count: int
    of: int
    interval: dict[
        str, float | None
    ]  # half of the 95 % confidence interval of each mean, None if it is unknown
    end: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRow(TrialRow):
    """A configuration that is run several times, like its first trial with the means of its `repeats`."""

    repeats: Repeats


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A result in the first objective, and the best one until then: None before a trial keeps the limits."""

    sequence_id: int
    time: float | None
    value: float
    best: float | None


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """How and when a trial, or a family of repeats, ended."""

    sequence_id: int
    status: str
    time: float


@dataclass(frozen=True, slots=True)
class BestIntermediate:
    """The best intermediate result in the first objective: number `sequence`, from 0, of the trial `sequence_id`."""

    sequence_id: int
    sequence: int
    value: float


@dataclass(frozen=True, slots=True)
class VolumeEntry:
    """The hypervolume of the front after a trial that increased it."""

    sequence_id: int
    time: float | None
    hypervolume: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoFront:
    """The front of several objectives, of one objective its best trial; trials are their numbers.

    `infeasible` are those that violate a limit, the closest to the limits first.
    """

    infeasible: list[int]
    limits: dict[str, str]
    trials: list[int]
    knee: int | None = None
    hypervolume: float | None = None
    reference: dict[str, float] = field(default_factory=dict[str, float])
    history: list[VolumeEntry] = field(default_factory=list[VolumeEntry])


ABSENT = object()
"""Stands for a missing default."""


@dataclass(frozen=True, slots=True)
class ChangedParameter:
    """A parameter of a trial that differs from its default, `ABSENT` where the defaults do not have it."""

    parameter: str
    default: Json
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosestTrial:
    """Of the trials nearly equal to the `best` the one that changes the defaults least.

    `best_by` says what the best one is best in, of several objectives: `knee`, or a name. `changes` and `best_changes`
    are those that matter, `unimportant` and `best_unimportant` the number of the others.
    """

    trial: TrialRow
    best: TrialRow
    best_by: str | None
    changes: list[ChangedParameter]
    unimportant: int
    best_changes: list[ChangedParameter]
    best_unimportant: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExperiment:
    """The row of an experiment without its configuration; times are seconds since the epoch, `run_time` seconds."""

    id: str
    name: str | None
    status: str
    reason: str
    error: str
    created: float
    end_time: float | None
    run_time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(StoredExperiment):
    """The state of an experiment. The HTTP API and `export` write its fields in this order."""

    folder: str
    is_running: bool  # a manager is alive
    is_search: bool  # its caller runs the trials
    has_program: bool | None  # whether a living program runs a trial of a search; None without a search
    counts: dict[str, int]  # trials by status
    trials: int
    intermediate_results: int
    trials_per_minute: float
    results_per_minute: float  # of the running trials
    limits: dict[str, float | None]
    objectives: list[Goal]
    outcome_limits: dict[str, str]
    defaults: TrialRow | None
    best: list[TrialRow]
    best_intermediate: BestIntermediate | None  # of one objective, while no trial has succeeded
    closest: int | None  # the trial that exceeds the limits of the metrics least, while none keeps them
    remaining: float | None  # estimated seconds

    @property
    def is_abandoned(self) -> bool:
        """Whether the experiment should run and has no manager, and needs one."""
        has_runner = self.is_running or self.is_search
        return not ExperimentStatus(self.status).is_final and not has_runner

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics that are optimised or limited."""
        return list(dict.fromkeys([*(goal.name for goal in self.objectives), *self.outcome_limits]))
