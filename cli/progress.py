"""The state of a running experiment as one frozen value, which the displays draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from ..manager import Manager
from ..manager.control import RateMeter, forecast
from ..numerics import interval
from ..protocol import parameters_of
from ..runner import Trial, TrialRunner, TrialStatus
from ..store.reading import FailedTrial, closest_text, duration_text, front_text, margin_text

__all__ = ["Best", "Progress", "ProgressMeter"]

_STARTING = "STARTING"


@dataclass(frozen=True, slots=True)
class Best:
    """A best trial: `value` is a number, or one per objective and limited metric by name.

    Of a family it is the mean of the `repeats`, whose margins (`interval`) are in the same order.
    """

    trial_id: str
    sequence_id: int
    value: float | dict[str, float]
    parameters: dict[str, Any]
    _: KW_ONLY
    repeats: int = 0
    intervals: tuple[float | None, ...] = ()

    @classmethod
    def of(cls, trial: Trial, objectives: Iterable[str], repeats: Sequence[Sequence[float]] = ()) -> Best:
        """Return a trial with values as a result; of a family, with the values of its `repeats`."""
        values = dict(zip(objectives, trial.values or (), strict=True))
        value = next(iter(values.values())) if len(values) == 1 else values
        return cls(
            trial.trial_id,
            trial.sequence_id,
            value,
            parameters_of(trial.record),
            repeats=len(repeats),
            intervals=tuple(interval(column) for column in zip(*repeats, strict=True)),
        )

    @property
    def text(self) -> str:
        """The value in words."""
        values = list(self.value.items()) if isinstance(self.value, dict) else [("", self.value)]
        margins = self.intervals or (None,) * len(values)
        return "  ".join(
            f"{name} {margin_text(value, margin)}".strip()
            for (name, value), margin in zip(values, margins, strict=True)
        )

    @property
    def where(self) -> str:
        """The trial, or the family, in words."""
        return f"family {self.sequence_id}" if self.repeats else f"trial {self.sequence_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of an experiment: `rate` in trials per second, durations in seconds; None where unknown.

    `elapsed` is how long it has run, over all its managers; while it starts, how long this one has been starting.

    With `is_bound`, `remaining` is an upper bound and not a forecast: the experiment may end earlier.
    """

    experiment_id: str
    name: str
    status: str
    reason: str
    elapsed: float
    counts: dict[str, int]
    total: int | None = None
    rate: float | None = None
    remaining: float | None = None
    is_bound: bool = False
    best: tuple[Best, ...] = ()
    front: str = ""  # of several objectives: how many trials are on it, and its knee
    closest: str = ""  # which trial is closest to the limits, while none keeps them
    failures: tuple[FailedTrial, ...] = ()
    waiting_for: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def clock(self) -> str:
        """How long the experiment has run; empty while it starts: its time has not begun."""
        return "" if self.status == _STARTING else duration_text(self.elapsed)

    @property
    def waiting(self) -> str:
        """What the experiment waits for; while it starts, also for how long."""
        is_starting = self.waiting_for and self.status == _STARTING
        return f"{self.waiting_for}, for {duration_text(self.elapsed)}" if is_starting else self.waiting_for

    @property
    def finished(self) -> int:
        """The number of trials that have ended."""
        return sum(count for status, count in self.counts.items() if TrialStatus(status).is_final)


class ProgressMeter:
    """Reads a manager; must be called on the thread of its loop."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._rate = RateMeter()
        self._began: float | None = None

    def read(self, now: float) -> Progress:
        """Return the state of the experiment; `now` is in seconds since the epoch."""
        folder, config, runner = self._manager.folder, self._manager.config, self._manager.runner
        name = config.experiment_name or ""
        if runner is None:
            return self._starting(now)
        names = [objective.name for objective in runner.objectives]
        counts = {status.value: count for status, count in runner.counts.items() if count}
        progress = Progress(
            experiment_id=folder.experiment_id,
            name=name,
            status=runner.status.value,
            reason=runner.reason,
            elapsed=runner.elapsed(now),
            counts=counts,
            total=config.max_trial_number,
            best=tuple(Best.of(trial, names, _repeats(runner, trial)) for trial in runner.best.front[:5]),
            front=front_text(runner.best.points(), repeats=runner.families.repeats.count),
            closest=""
            if runner.best.closest is None
            else closest_text(
                runner.best.closest.sequence_id, runner.status, repeats=runner.families.repeats.count
            ),
            failures=tuple(FailedTrial.of(trial) for trial in runner.failures),
            waiting_for=_waiting_for(runner),
            warnings=tuple(self._manager.warnings()),
        )
        self._rate.note(now, progress.finished)
        rate = self._rate.rate(now)
        remaining, is_bound = forecast(
            total=progress.total,
            finished=progress.finished,
            rate=rate,
            elapsed=progress.elapsed,
            longest=config.max_experiment_duration,
        )
        return replace(progress, rate=rate, remaining=remaining, is_bound=is_bound)

    def _starting(self, now: float) -> Progress:
        config = self._manager.config
        self._began = now if self._began is None else self._began
        return Progress(
            experiment_id=self._manager.folder.experiment_id,
            name=config.experiment_name or "",
            status=_STARTING,
            reason="",
            elapsed=now - self._began,
            counts={},
            total=config.max_trial_number,
            waiting_for="Ray is starting" if config.training_service.platform == "ray" else "",
        )


def _repeats(runner: TrialRunner, trial: Trial) -> Sequence[Sequence[float]]:
    family = runner.families.of(trial)
    return () if family is None else family.results


def _waiting_for(runner: TrialRunner) -> str:
    """Return why nothing runs although a trial waits; empty if something runs."""
    if not runner.waiting or runner.counts.get("RUNNING"):  # type: ignore[call-overload]
        return ""
    return runner.why_waiting(runner.waiting[0])
