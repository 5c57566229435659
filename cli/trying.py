"""The first trials of a config for a few seconds, in real workers, and a forecast for the whole experiment."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import ExperimentConfig
from ..manager import create_experiment
from ..server import early_stopping_note
from ..store.reading import (
    ExperimentView,
    FailedTrial,
    duration_text,
    number_text,
    parameters_text,
    result_text,
)
from .display import SilentDisplay
from .foreground import RunningExperiment
from .interrupts import Interrupts

__all__ = ["Tried", "forecast_lines", "size_text", "tried_lines", "try_config"]

# The size in the store of a trial and of each of its results, in bytes.
_ROW, _RESULT = 600, 60
# The trial whose outcome is shown has the first of these statuses, if any has.
_TELLING = {"FAILED": 0, "SYS_CANCELED": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The outcome of one of the trials: the size of its files in `bytes`, its results (as JSON text).

    It is one that failed, or else one that was stopped. `seconds` is the mean run time of all of them.
    """

    status: str
    seconds: float
    bytes: int
    parameters: dict[str, Any]
    intermediate: list[Any]
    final: Any
    failure: str
    last_lines: str

    @property
    def is_whole(self) -> bool:
        """Whether it ended by itself."""
        return self.status == "SUCCEEDED"

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or did not even start."""
        return self.status not in ("SUCCEEDED", "SYS_CANCELED", "EARLY_STOPPED")


def try_config(config: ExperimentConfig, seconds: float, interrupts: Interrupts) -> Tried:
    """Run as many trials of `config` as it runs at a time, for at most `seconds`, in a temporary folder.

    Trials that run beside each other take longer than one alone.
    """
    count = min(config.trial_concurrency, config.max_trial_number or config.trial_concurrency)
    limits = {"max_trial_number": count, "trial_concurrency": count, "max_experiment_duration": seconds}
    # Earlier searches are named by their ids in another folder than the temporary one, and were read by the check.
    without = {"storage_path": None, "trackers": {}, "warm_start": ()}
    short = config.model_copy(update={**limits, "max_failures": 0, **without})
    with tempfile.TemporaryDirectory(prefix="pitchpipe-try-") as directory:
        manager = create_experiment(short, directory=Path(directory), experiment_id="tried", is_kept=False)
        running = RunningExperiment(manager, SilentDisplay(sys.stderr), interrupts)
        running.run()
        with ExperimentView(manager.folder) as view:
            return _tried(view, running.error)


def _tried(view: ExperimentView, error: str) -> Tried:
    found = view.details()
    ran = [one for one in found if one.start_time is not None]
    if not ran:
        row = view.experiment()
        why = error or row.reason or "no trial could start"
        return Tried(
            status="NONE",
            seconds=0.0,
            bytes=0,
            parameters={},
            intermediate=[],
            final=None,
            failure=why,
            last_lines=row.error,
        )
    trial = min(ran, key=lambda one: _TELLING.get(one.status, len(_TELLING)))
    number = trial.sequence_id
    failures = view.failures()
    return Tried(
        status=trial.status,
        seconds=sum(one.duration or 0.0 for one in ran) / len(ran),
        bytes=sum(path.stat().st_size for path in view.folder.trial(number).rglob("*") if path.is_file()),
        parameters=trial.parameters,
        intermediate=[*view.results(number).get(number, {}).values()],
        final=trial.final,
        failure=str(FailedTrial.of(failures[0])) if failures else trial.reason,
        last_lines=trial.error or "",
    )


def tried_lines(tried: Tried, config: ExperimentConfig) -> Iterator[str]:
    """Yield what the trial did, as lines."""
    ran, trial = duration_text(tried.seconds), f"a trial with {parameters_text(tried.parameters)}"
    if tried.has_failed:
        who = "no trial ran" if tried.status == "NONE" else f"{trial} failed"
        yield f"{who}: {tried.failure}"
        yield from (f"  {line}" for line in tried.last_lines.rstrip().splitlines())
        return
    ended = f"succeeded in {ran}" if tried.is_whole else f"still ran after {ran}, and was stopped"
    yield f"{trial} {ended}"
    reports = tried.intermediate
    note = early_stopping_note(config.canonical(), reports) if len(reports) > 1 else ""
    if tried.intermediate:
        last = result_text(tried.intermediate[-1])
        yield f"  intermediate  {len(tried.intermediate)}, the last {last}"
    else:
        yield "  intermediate  none reported, so early stopping cannot work"
    if tried.final is not None:
        yield f"  final         {result_text(tried.final)}"
    else:
        yield "  final         none yet"
    if note:
        yield f"  note          {note}"


def forecast_lines(tried: Tried, config: ExperimentConfig) -> Iterator[str]:
    """Yield a forecast of the experiment's run time and disk usage, as lines."""
    if tried.has_failed:
        return
    count, limit = config.max_trial_number, config.max_experiment_duration
    several = f"{config.trial_concurrency} at a time"
    more = "" if tried.is_whole else "more than "
    if count is not None:
        seconds = tried.seconds * -(-count // config.trial_concurrency)
        end = ""
        if limit is not None and limit < seconds:
            seconds, end = limit, f" (max_experiment_duration ends it after {duration_text(limit)})"
        yield f"  time          {more}{duration_text(seconds)} for {_trials(count)}, {several}{end}"
    elif limit is not None and tried.seconds > 0:
        fit = int(limit / tried.seconds * config.trial_concurrency)
        yield f"  time          {duration_text(limit)}: about {_trials(fit)}, {several}"
    each = tried.bytes + _ROW + _RESULT * len(tried.intermediate)
    whole = f", {more}{size_text(each * count)} in all" if count is not None else ""
    yield f"  disk          {more}{size_text(each)} per trial{whole}"


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def size_text(count: float) -> str:
    """Return a size in bytes for people.

    >>> size_text(512), size_text(2_500_000)
    ('512 B', '2.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{number_text(float(f'{count:.3g}'))} {unit}"
        count /= 1000
    return f"{number_text(float(f'{count:.3g}'))} TB"
