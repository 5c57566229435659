"""What a run shows: a live table on a terminal (`live_table.py`), occasional lines elsewhere, or nothing.

The manager's loop reads its state into frozen `RunProgress` values, and a separate thread draws them, so that a
terminal that blocks (Ctrl-S, a slow connection) does not delay the experiment.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import IO, Any

from ..manager import Manager
from ..numerics import interval
from ..protocol import Parameters, parameters_of
from ..runner import RateMeter, Trial, TrialRunner, TrialStatus, forecast
from ..telling import (
    FailedTrial,
    closest_text,
    counts_text,
    duration_text,
    escaped,
    experiment_text,
    front_text,
    left_text,
    parameters_text,
    rate_text,
    results_text,
)

_REFRESH = 0.25
_PLAIN_INTERVAL = 5.0
_LONGEST_SILENCE = 15.0
_FIRST_INTERVAL = 1.0
_LAST_WORD = 2.0
_LONGEST = 300  # characters of parameters on a line
_STARTING = "STARTING"
ENDED = ("DONE", "STOPPED", "ERROR")


class Display(ABC):
    """Draws the latest `RunProgress` every `interval` seconds while its `with` block runs."""

    interval = _REFRESH

    def __init__(self) -> None:
        self._latest: RunProgress | None = None
        self._messages: list[str] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="display", daemon=True)

    def update(self, progress: RunProgress) -> None:
        """Store the latest progress; never waits for the terminal."""
        self._latest = progress

    def message(self, text: str) -> None:
        """Show a message that stays, at once."""
        with self._lock:
            self._messages.append(text)
        self._wake.set()

    def __enter__(self) -> Display:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing = True
        self._wake.set()
        self._thread.join(_LAST_WORD)

    def _work(self) -> None:
        try:
            with self.drawing():
                pause = min(self.interval, _FIRST_INTERVAL)
                while not self._closing:
                    self._draw_all()
                    self._wake.wait(pause)
                    self._wake.clear()
                    pause = self.interval
                self._draw_all()
        except OSError:
            pass  # the terminal is gone; the experiment continues

    def _draw_all(self) -> None:
        with self._lock:
            messages, self._messages = self._messages, []
        for message in messages:
            self.write(message)
        if self._latest is not None:
            self.draw(self._latest)

    def drawing(self) -> AbstractContextManager[Any]:
        """Return the context in which drawing happens."""
        return nullcontext()

    @abstractmethod
    def write(self, text: str) -> None:
        """Print a line that stays."""

    @abstractmethod
    def draw(self, progress: RunProgress) -> None:
        """Draw the progress."""


class SilentDisplay(Display):
    """A display that shows messages (warnings) only."""

    def __init__(self, errors: IO[str]) -> None:
        super().__init__()
        self._errors = errors

    def write(self, text: str) -> None:
        """Print a message."""
        print(text, file=self._errors, flush=True)

    def draw(self, progress: RunProgress) -> None:
        """Show nothing."""


class PlainDisplay(SilentDisplay):
    """A display that prints a line on a change, at most every 5 seconds, and an occasional line without one."""

    interval = _PLAIN_INTERVAL

    def __init__(self, output: IO[str], errors: IO[str]) -> None:
        super().__init__(errors)
        self._output = output
        self._drawn: tuple[object, ...] = ()
        self._quiet_since = 0.0

    def draw(self, progress: RunProgress) -> None:
        """Print a line if it contains something new, or if the last one was long ago."""
        best = (*progress.best[:1], progress.front, progress.closest)
        facts = (progress.status, progress.counts, best, progress.waiting_for, progress.warnings)
        # The end is reported with the result.
        is_due = facts != self._drawn or progress.elapsed >= self._quiet_since + _LONGEST_SILENCE
        if is_due and not self._closing and progress.status not in ENDED:
            self._drawn, self._quiet_since = facts, progress.elapsed
            print(escaped(plain_line(progress)), file=self._output, flush=True)


def plain_line(progress: RunProgress) -> str:
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

    @property
    def clock(self) -> str:
        """How long the experiment has run; empty during the start, which does not count as running time."""
        return "" if self.status == _STARTING else duration_text(self.elapsed)

    @property
    def waiting(self) -> str:
        """What the experiment waits for; during the start, also for how long."""
        is_starting = self.waiting_for and self.status == _STARTING
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


class ProgressMeter:
    """Reads the progress from a manager; must be called on the thread of its loop."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._rate = RateMeter()
        self._began: float | None = None

    def read(self, now: float) -> RunProgress:
        """Return the state of the experiment; `now` is in seconds since the epoch."""
        config, runner = self._manager.config, self._manager.runner
        self._began = now if self._began is None else self._began
        progress = RunProgress(
            experiment_id=self._manager.folder.experiment_id,
            name=config.experiment_name or "",
            status=_STARTING,
            elapsed=now - self._began,
            total=config.max_trial_number,
            waiting_for="Ray is starting" if config.training_service.platform == "ray" else "",
        )
        if runner is None:
            return progress
        names = [objective.name for objective in runner.objectives]
        repeats, closest = runner.families.repeats.count, runner.best.closest
        progress = replace(
            progress,
            status=runner.status.value,
            reason=runner.reason,
            elapsed=runner.elapsed(now),
            counts={status.value: count for status, count in runner.counts.items() if count},
            best=tuple(
                BestSoFar.of(trial, names, _repeats(runner, trial)) for trial in runner.best.front[:5]
            ),
            front=front_text(runner.best.points(), repeats=repeats),
            closest=""
            if closest is None
            else closest_text(closest.sequence_id, runner.status, repeats=repeats),
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


def _repeats(runner: TrialRunner, trial: Trial) -> Sequence[Sequence[float]]:
    family = runner.families.of(trial)
    return () if family is None else family.results


def _waiting_for(runner: TrialRunner) -> str:
    """Return why nothing runs although a trial waits; empty if something runs."""
    if not runner.waiting or runner.counts.get("RUNNING"):  # type: ignore[call-overload]
        return ""
    return runner.why_waiting(runner.waiting[0])
