"""The progress of a run: its state at a moment, and the line about it that is printed where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from ..numerics import interval
from ..protocol import Parameters, parameters_of
from ..runner import RateMeter, Trial, TrialRunner, TrialStatus, forecast
from .best_lines import closest_text, front_text
from .failed_trials import FailedTrial
from .words import (
    counts_text,
    duration_text,
    escaped,
    experiment_text,
    left_text,
    parameters_text,
    rate_text,
    results_text,
)

_LONGEST = 300  # characters of parameters on a line
_LONGEST_SILENCE = 15.0  # seconds
STARTING = "STARTING"
"""In the place of a status while there is no runner yet."""
ENDED = ("DONE", "STOPPED", "ERROR")


def progress_line(progress: RunProgress) -> str:
    """Return the progress on one line."""
    of = f"/{progress.total}" if progress.total is not None else ""
    parts = [
        ": ".join(filter(None, (progress.clock, experiment_text(progress.status)))),
        f"{progress.finished}{of} trials",
    ]
    parts.append(counts_text(progress.counts))
    if progress.rate:
        parts.append(rate_text(progress.rate))
    if progress.remaining is not None and progress.status != "STOPPING":
        parts.append(left_text(progress.remaining, progress.is_bound))
    if len(progress.best) == 1:
        best = progress.best[0]
        parameters = parameters_text(best.parameters)
        shown = parameters if len(parameters) <= _LONGEST else f"{parameters[:_LONGEST]}…"
        parts.append(f"best {best.text} ({best.where}: {shown})")
    parts += [progress.front, progress.closest]
    if progress.waiting:
        parts.append(f"waiting: {progress.waiting}")
    parts += progress.warnings
    return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The state of a running experiment: `rate` in trials per second, durations in seconds, None where unknown.

    `elapsed` is how long it has run, under all its managers; during the start, how long this manager has been starting.
    With `is_bound`, `remaining` is an upper bound instead of a forecast: the experiment may end earlier.
    """

    experiment_id: str
    name: str
    status: str
    reason: str = ""
    elapsed: float
    counts: dict[str, int] = field(default_factory=dict[str, int])
    total: int | None = None
    rate: float | None = None
    remaining: float | None = None
    is_bound: bool = False
    best: tuple[BestSoFar, ...] = ()
    front: str = ""  # with several objectives: the number of trials on the front, and its knee
    closest: str = ""  # the trial closest to the limits, while none keeps them
    failures: tuple[FailedTrial, ...] = ()
    waiting_for: str = ""
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        runner: TrialRunner,
        now: float,
        meter: RateMeter,
        *,
        experiment_id: str,
        name: str = "",
        total: int | None = None,
        longest: float | None = None,
    ) -> RunProgress:
        """Return the progress at a time, in seconds since the epoch; call this where the runner works.

        `meter` is always the same one; `total` trials and `longest` seconds are the limits of the experiment.
        """
        names = [objective.name for objective in runner.objectives]
        repeats, closest = runner.families.repeats.count, runner.best.closest
        progress = cls(
            experiment_id=experiment_id,
            name=name,
            status=runner.status.value,
            reason=runner.reason,
            elapsed=runner.elapsed(now),
            counts={status.value: count for status, count in runner.counts.items() if count},
            total=total,
            best=tuple(
                BestSoFar.of(trial, names, _repeats(runner, trial)) for trial in runner.best.front[:5]
            ),
            front=front_text(runner.best.points(), repeats=repeats),
            closest=""
            if closest is None
            else closest_text(closest.sequence_id, runner.status, repeats=repeats),
            failures=tuple(FailedTrial.of(trial) for trial in runner.failures),
            waiting_for=_waiting_for(runner),
        )
        meter.note(now, progress.finished)
        rate = meter.rate(now)
        remaining, is_bound = forecast(
            total=total, finished=progress.finished, rate=rate, elapsed=progress.elapsed, longest=longest
        )
        return replace(progress, rate=rate, remaining=remaining, is_bound=is_bound)

    @property
    def clock(self) -> str:
        """How long the experiment has run; empty during the start, which does not count as running time."""
        return "" if self.status == STARTING else duration_text(self.elapsed)

    @property
    def waiting(self) -> str:
        """What the experiment waits for; during the start, also for how long."""
        is_starting = self.waiting_for and self.status == STARTING
        return f"{self.waiting_for}, for {duration_text(self.elapsed)}" if is_starting else self.waiting_for

    @property
    def finished(self) -> int:
        """The number of trials that have ended."""
        return sum(count for status, count in self.counts.items() if TrialStatus(status).is_final)


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """A best trial: `value` is a number or, by name, one for each objective and limited metric.

    For a family of `repeats` it is their mean, with the margins of error in `intervals`, in the same order.
    """

    trial_id: str
    sequence_id: int
    value: float | dict[str, float]
    parameters: Parameters
    _: KW_ONLY
    repeats: int = 0
    intervals: tuple[float | None, ...] = ()

    @classmethod
    def of(
        cls, trial: Trial, objectives: Iterable[str], repeats: Sequence[Sequence[float]] = ()
    ) -> BestSoFar:
        """Return a trial that has values; for the first trial of a family, also give the values of its `repeats`."""
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
        values = self.value if isinstance(self.value, dict) else {"": self.value}
        return results_text(values, dict(zip(values, self.intervals, strict=False)))

    @property
    def where(self) -> str:
        """The trial, or the family, in words."""
        return f"family {self.sequence_id}" if self.repeats else f"trial {self.sequence_id}"


class ProgressLines:
    """Lines about the progress: one for each change, and one after a silence of 15 seconds; none at the end."""

    def __init__(self) -> None:
        self._told: tuple[object, ...] = ()
        self._silent_since = 0.0

    def next(self, progress: RunProgress) -> str | None:
        """Return the line to print now, if one is due."""
        best = (*progress.best[:1], progress.front, progress.closest)
        facts = (progress.status, progress.counts, best, progress.waiting_for, progress.warnings)
        is_due = facts != self._told or progress.elapsed >= self._silent_since + _LONGEST_SILENCE
        if not is_due or progress.status in ENDED:  # the end is reported with the result
            return None
        self._told, self._silent_since = facts, progress.elapsed
        return escaped(progress_line(progress))


def _repeats(runner: TrialRunner, trial: Trial) -> Sequence[Sequence[float]]:
    family = runner.families.of(trial)
    return () if family is None else family.results


def _waiting_for(runner: TrialRunner) -> str:
    """Return why nothing runs although a trial waits; empty if something runs."""
    if not runner.waiting or runner.counts.get("RUNNING"):  # type: ignore[call-overload]
        return ""
    return runner.why_waiting(runner.waiting[0])
