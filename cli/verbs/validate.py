"""`pitchpipe validate`: check a config; with `--try`, try the first trials."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from ...protocol import Json, Parameters, counted, size_text
from ...telling import duration_text, parameters_text, result_text
from ...trial_agent import usable_cpus
from ..failures import FAILED, INTERRUPTED
from ..interrupts import Interrupts
from ..printing import print_warning
from ..verb import config_options, json_option, say, say_lines, verb

if TYPE_CHECKING:
    from ...config import ExperimentConfig
    from ...store.reading import ExperimentView

# The size in the store of a trial and of each of its results, in bytes.
_ROW, _RESULT = 600, 60
# The trial whose outcome is shown has the first of these statuses, if any has.
_SHOWN_FIRST = {"FAILED": 0, "SYS_CANCELED": 1}


@verb("validate", "pitchpipe validate experiment.yml", "pitchpipe validate experiment.yml --try --seconds 30")
@config_options
@click.option(
    "--try", "is_tried", is_flag=True, help="Run the first trials, and forecast run time and disk usage."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="The longest time that the trials of --try may run.",
)
@json_option
def validate(config: Path, overrides: tuple[str, ...], is_tried: bool, seconds: float, as_json: bool) -> int:
    """Check a config as `run` does, and start nothing.

    All problems are listed with file:line:column and a hint (exit code 2). The tuner and the assessor are
    constructed once, in a child process. If trials run on this machine, or on a private Ray, their CPUs, memory,
    GPUs, command and script must exist (else exit code 1). With --try as many trials as run at a time run for a few
    seconds where the config says (also on a Ray cluster), with the tuner's first parameters; nothing of them is
    kept. Exit code 1 if one fails.
    """
    with Interrupts() as interrupts:
        from ..new_experiment import check_startable, checked_config, with_places_in_file

        checked = checked_config(config, overrides)
        check_startable(checked, config, overrides)
        with with_places_in_file(config, overrides):
            notes, warnings = _warm_start_notes(checked)
        for warning in warnings:
            print_warning(config, warning)
        valid = _valid_object(config, checked, notes)
        if not as_json:
            say_lines(valid_lines(valid))
        # No more trials run at a time than this machine has room for, now and in the forecast.
        checked = checked.model_copy(update={"trial_concurrency": valid["at_a_time"]})
        tried = try_config(checked, seconds, interrupts) if is_tried else None
        if interrupts.count:
            return INTERRUPTED
        if tried is None:
            say(as_json, valid)
            return 0
        lines = () if as_json else (*tried_lines(tried, checked), *forecast_lines(tried, checked))
        say(as_json, {**valid, "tried": asdict(tried)}, *lines)
        return FAILED if tried.has_failed else 0


class ValidObject(TypedDict):
    """What a valid config says, for scripts."""

    config: str
    parameters: list[str]
    tuner: str | None
    assessor: str | None
    objective: str
    notes: list[str]
    trial_concurrency: int
    at_a_time: int
    platform: str


def _valid_object(path: Path, checked: ExperimentConfig, notes: Sequence[str]) -> ValidObject:
    """Return what a valid config says; `notes` are about its warm start."""
    from ...manager import most_at_once

    tuner, assessor = checked.tuner, checked.assessor
    return {
        "config": str(path),
        "parameters": list(checked.search_space or {}),
        "tuner": tuner.name or tuner.class_name,
        "assessor": None if assessor is None else assessor.name or assessor.class_name,
        "objective": checked.goal,
        "notes": [*filter(None, [checked.repeats_note, checked.assessor_note, *notes])],
        "trial_concurrency": checked.trial_concurrency,
        "at_a_time": most_at_once(checked),
        "platform": checked.training_service.platform,
    }


def valid_lines(valid: ValidObject) -> Iterator[str]:
    """Yield what a valid config says, as lines."""
    yield f"{valid['config']}: the config is valid"
    yield f"  parameters    {', '.join(valid['parameters'])}"
    yield f"  tuner         {valid['tuner']}"
    if valid["assessor"] is not None:
        yield f"  assessor      {valid['assessor']}"
    yield f"  objective     {valid['objective']}"
    yield from (f"  {note}" for note in valid["notes"])
    at_once, wanted, platform = valid["at_a_time"], valid["trial_concurrency"], valid["platform"]
    machine = f" ({counted(usable_cpus(), 'CPU')}, which the trials share)" if platform == "local" else ""
    yield f"  trials        {at_once} at a time, on {platform}{machine}"
    if at_once < wanted:
        yield f"  trial_concurrency is {wanted}, and this machine has room for {at_once}"


def _warm_start_notes(checked: ExperimentConfig) -> tuple[Sequence[str], Sequence[str]]:
    if not checked.warm_start:
        return (), ()
    from ...manager import warm_start_notes  # importing the manager takes longer than the check

    return warm_start_notes(checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The outcome of one of the trials that were tried: one that failed, else one that was stopped, else any.

    `seconds` is the mean run time of all of them, `bytes` the size of this trial's files.
    """

    status: str
    seconds: float = 0.0
    bytes: int = 0
    parameters: Parameters = field(default_factory=dict)
    intermediate: list[Json] = field(default_factory=list)
    final: Json = None
    failure: str
    last_lines: str

    @property
    def is_whole(self) -> bool:
        """Whether the trial ran to its own end."""
        return self.status == "SUCCEEDED"

    @property
    def has_failed(self) -> bool:
        """Whether the trial failed, or could not start."""
        return self.status not in ("SUCCEEDED", "SYS_CANCELED", "EARLY_STOPPED")


def try_config(config: ExperimentConfig, seconds: float, interrupts: Interrupts) -> Tried:
    """Run as many trials as `config` runs at a time, for at most `seconds`, in a temporary folder.

    A single trial would be faster than trials are beside each other.
    """
    from ...manager import create_experiment
    from ...store.reading import ExperimentView
    from ..display import SilentDisplay
    from ..foreground import RunningExperiment

    interrupts.hold()
    count = min(config.trial_concurrency, config.max_trial_number or config.trial_concurrency)
    limits = {"max_trial_number": count, "trial_concurrency": count, "max_experiment_duration": seconds}
    # A warm start names experiments of another folder than the temporary one; the check has read them.
    without = {"storage_path": None, "trackers": {}, "warm_start": ()}
    short = config.model_copy(update={**limits, "max_failures": 0, **without})
    with tempfile.TemporaryDirectory(prefix="pitchpipe-try-") as directory:
        manager = create_experiment(short, directory=Path(directory), experiment_id="tried", is_kept=False)
        running = RunningExperiment(manager, SilentDisplay(sys.stderr), interrupts)
        running.run()
        with ExperimentView(manager.folder) as view:
            return _tried(view, running.error)


def _tried(view: ExperimentView, error: str) -> Tried:
    from ...telling import FailedTrial

    ran = [trial for trial in view.details() if trial.start_time is not None]
    if not ran:
        row = view.experiment()
        why = error or row.reason or "no trial could start"
        return Tried(status="NONE", failure=why, last_lines=row.error)
    trial = min(ran, key=lambda trial: _SHOWN_FIRST.get(trial.status, len(_SHOWN_FIRST)))
    number = trial.sequence_id
    failures = view.failures()
    return Tried(
        status=trial.status,
        seconds=sum(trial.duration or 0.0 for trial in ran) / len(ran),
        bytes=sum(path.stat().st_size for path in view.folder.trial(number).rglob("*") if path.is_file()),
        parameters=trial.parameters,
        intermediate=[*view.results_of([number]).get(number, {}).values()],
        final=trial.final,
        failure=str(FailedTrial.of(failures[0])) if failures else trial.reason,
        last_lines=trial.error or "",
    )


def tried_lines(tried: Tried, config: ExperimentConfig) -> Iterator[str]:
    """Yield what the trial did, as lines."""
    from ...server import early_stopping_note

    ran, trial = duration_text(tried.seconds), f"a trial with {parameters_text(tried.parameters)}"
    if tried.has_failed:
        who = "no trial ran" if tried.status == "NONE" else f"{trial} failed"
        yield f"{who}: {tried.failure}"
        yield from (f"  {line}" for line in tried.last_lines.rstrip().splitlines())
        return
    ended = f"succeeded in {ran}" if tried.is_whole else f"still ran after {ran}, and was stopped"
    yield f"{trial} {ended}"
    reports = tried.intermediate
    if reports:
        yield f"  intermediate  {len(reports)}, the last {result_text(reports[-1])}"
    else:
        yield "  intermediate  none reported, so early stopping cannot work"
    yield f"  final         {'none yet' if tried.final is None else result_text(tried.final)}"
    if len(reports) > 1 and (note := early_stopping_note(config.canonical(), reports)):
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
        yield f"  time          {more}{duration_text(seconds)} for {counted(count, 'trial')}, {several}{end}"
    elif limit is not None and tried.seconds > 0:
        fit = int(limit / tried.seconds * config.trial_concurrency)
        yield f"  time          {duration_text(limit)}: about {counted(fit, 'trial')}, {several}"
    each = tried.bytes + _ROW + _RESULT * len(tried.intermediate)
    whole = f", {more}{size_text(each * count)} in all" if count is not None else ""
    yield f"  disk          {more}{size_text(each)} per trial{whole}"
