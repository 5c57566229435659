"""`nni.experiment` for scripts that start NNI experiments from Python: its classes, over Pitchpipe's verbs.

`pitchpipe.Experiment` does more. This one runs a command, in a background process that outlives the script if asked to.
"""

from __future__ import annotations

import atexit
import json
import math
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from ...protocol import Json, JsonObject, Parameters, refuse_while_loading
from ...server import require_server
from ...signals import DeferredSignals  # pyright: ignore[reportMissingImports]  (in pitchpipe/)
from ...store import ExperimentFolder, StoreError, absolute, default_directory, new_experiment_id
from ...store.reading import ExperimentView, Summary, TrialQuery, TrialRow
from .config import AlgorithmConfig, ExperimentConfig
from .python_words import in_words_of_python
from .rest_forms import (
    NniMetadata,
    NniProfile,
    NniStatistic,
    TrialReport,
    final_reports,
    nni_metadata,
    nni_profile,
    nni_statistics,
    reports_of,
)

_ENDED = ("DONE", "STOPPED", "ERROR")
_COMMAND = (sys.executable, "-P", "-m", "pitchpipe")
# NNI 2.0 to 2.2 took the tuner itself; only a class and its arguments reach another process.
_TUNER_GIVEN = (
    "Experiment(tuner, platform) of NNI 2.0 to 2.2 knows no arguments of {0}: write Experiment(platform), then"
    " experiment.config.tuner.name and .class_args, or CustomAlgorithmConfig(class_name='file.{0}',"
    " code_directory='.', class_args={{}}) as experiment.config.tuner"
)
_LOOKS = 10  # scripts that look at the status again and again after the end wait for DONE


class ExperimentError(RuntimeError):
    """An experiment that cannot be started, found or changed; the message says why."""


class RunMode(Enum):
    """Whether an experiment ends with the script (Background, Foreground) or outlives it (Detach)."""

    Background = "background"
    Foreground = "foreground"
    Detach = "detach"


@dataclass
class TrialResult:
    """The parameters of a trial and its final result."""

    parameter: Parameters
    value: Json
    trialJobId: str


@dataclass(kw_only=True)
class TrialMetricData:
    """One result: `type` is PERIODICAL or FINAL, `timestamp` in ms, `data` the reported value."""

    timestamp: int
    trialJobId: str
    parameterId: str | None
    type: str
    sequence: int
    data: Json


@dataclass
class TrialHyperParameters:
    """The parameters of a trial and where they come from."""

    parameter_id: int | str | None
    parameter_source: str
    parameters: Json
    parameter_index: int = 0


@dataclass(kw_only=True)
class TrialJob:
    """A trial; times in ms, -1 while it runs."""

    trialJobId: str
    status: str
    hyperParameters: list[TrialHyperParameters]
    logPath: str
    startTime: int
    endTime: int = -1
    finalMetricData: list[TrialMetricData] = field(default_factory=list)
    stderrPath: str
    sequenceId: int
    message: str = "--"


class _StaticToo:
    """A method that is static in NNI 2: with an id as its first argument, it continues and returns that experiment."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, experiment: Experiment | None, cls: type[Experiment]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if "experiment_id" in options:
                arguments = (options.pop("experiment_id"), *arguments)
            if not arguments or not isinstance(arguments[0], str):
                return self._method(experiment, *arguments, **options)
            named = cls(id=arguments[0])
            self._method(named, *arguments[1:], **options)
            return named

        return call


class Experiment:
    """NNI's Experiment. Ports are accepted and have no effect: `pitchpipe ui` shows the pages.

    `config` is an `ExperimentConfig`, a platform, or None for an experiment that exists and is named by `id`. In the
    form of NNI 2.0 to 2.2 it is a `HyperoptTuner`, and `id` takes its place.
    """

    def __init__(self, config: ExperimentConfig | str | list[str] | Any = None, id: Any = None) -> None:
        tuner = None
        if hasattr(config, "generate_parameters"):
            tuner, config, id = config, "local" if id is None else id, None
        self.config = ExperimentConfig(config) if isinstance(config, str | list) else config
        if tuner is not None:
            self.config.tuner = _config_of(tuner)
        self.id: str | None = new_experiment_id() if id is None and config is not None else id
        self._folder: Path | None = None
        self._ends_seen = 0
        self.port: int | None = None
        self.url_prefix: str | None = None
        self._viewer: subprocess.Popen[bytes] | None = None

    # to start and to end

    def start(self, port: int = 8080, debug: bool = False, run_mode: RunMode = RunMode.Background) -> None:
        """Start the experiment in the background; unless detached, it is stopped when the script ends."""
        if self.config is None:
            raise ExperimentError("an experiment needs a config to start; `resume` continues one")
        refuse_while_loading("trial", "plug-in")
        more = {"debug": True} if debug else {}
        plain = {**self.config.plain(), **more}

        def begin() -> None:
            with _as_file(plain) as path:
                reply = _verb("create", path, "--experiment-id", self.id, "--json", hidden=path)
            self._began(json.loads(reply), port, run_mode)

        self._run_to_end(begin, wait_completion=run_mode is RunMode.Foreground)

    def run(self, port: int = 8080, wait_completion: bool = True, debug: bool = False) -> bool | None:
        """Start the experiment and wait; return whether it ended well, None without waiting."""
        return self._run_to_end(lambda: self.start(port, debug), wait_completion=wait_completion)

    @_StaticToo
    def resume(self, port: int = 8080, wait_completion: bool = True, debug: bool = False) -> bool | None:
        """Continue an experiment; `Experiment.resume("ID")` returns it."""
        del debug

        def begin() -> None:
            refuse_while_loading("trial", "plug-in")
            reply = _verb("resume", self._path(), "--detach", "--json")
            self._began(json.loads(reply), port, RunMode.Background)

        return self._run_to_end(begin, wait_completion=wait_completion)

    def run_or_resume(
        self, port: int = 8080, wait_completion: bool = True, debug: bool = False
    ) -> bool | None:
        """Continue the experiment called `id` if there is one; start it otherwise."""
        begin = self.resume if self.has_checkpoint() else self.run
        return begin(port, wait_completion, debug)

    def stop(self) -> None:
        """End the experiment with its trials, and its pages; nothing happens if it has ended."""
        atexit.unregister(self.stop)
        self._end_view()
        if self.has_checkpoint() and self._summary().status not in _ENDED:
            _verb("stop", self._path())

    @_StaticToo
    def view(self, port: int = 8080, non_blocking: bool = False) -> None:
        """Show the pages of an experiment, until Ctrl-C or, with `non_blocking`, until the script ends.

        Raise `MissingExtraError` without the extra `ui`.
        """
        require_server(pages=True)
        words = [*_COMMAND, "ui", str(self._path()), "--port", str(port), "--no-browser"]
        self._end_view()
        self._viewer = subprocess.Popen(words)
        if non_blocking:
            atexit.register(self._end_view)
        else:
            with suppress(KeyboardInterrupt):
                self._viewer.wait()

    @classmethod
    def connect(cls, port: int = 8080) -> Experiment:
        """Return the experiment that runs; raise `ExperimentError` unless there is exactly one."""
        del port
        folders = ExperimentFolder.all(default_directory())
        running = [folder for folder in folders if folder.manager() is not None]
        if len(running) != 1:
            names = ", ".join(folder.experiment_id for folder in running) or "none"
            what = f"expected one running experiment in {default_directory()}, found: {names}"
            raise ExperimentError(f"{what}; name it: Experiment(id=ID)")
        return cls(id=running[0].experiment_id)

    def has_checkpoint(self) -> bool:
        """Return whether there is an experiment called `id`."""
        return self.id is not None and self._path().is_dir()

    def load_checkpoint(self) -> None:
        """Do nothing: an experiment keeps its config."""

    def save_checkpoint(self) -> None:
        """Do nothing: an experiment keeps its config."""

    # to read

    def get_status(self) -> str:
        """Return the status, in NNI's words; of an experiment that has ended VIEWED while `view` shows its pages.

        An event loop that waits for DONE gets `ExperimentError` some calls after another end.
        """
        summary = self._summary()
        status, why = summary.status, summary.reason
        self._ends_seen = self._ends_seen + 1 if status in ("ERROR", "STOPPED") else 0
        if self._ends_seen > _LOOKS:
            raise ExperimentError(f"experiment {self.id} ended as {status}: {why}")
        is_viewed = self._viewer is not None and self._viewer.poll() is None
        return "VIEWED" if is_viewed and status in _ENDED else status

    def get_experiment_profile(self) -> NniProfile:
        """Return the config as `params`, and how far the experiment is; times in ms."""
        with self._view() as view:
            return {"endTime": None, **nni_profile(view)}

    def get_experiment_metadata(self, exp_id: str) -> NniMetadata | JsonObject:
        """Return the line of an experiment in the list of all; an empty one if it is not there."""
        return next((line for line in self.get_all_experiments_metadata() if line["id"] == exp_id), {})

    def get_all_experiments_metadata(self) -> list[NniMetadata]:
        """Return a line for each experiment; those that cannot be read are left out."""
        lines = []
        for folder in ExperimentFolder.all(default_directory()):
            with suppress(StoreError), ExperimentView(folder) as view:
                lines.append(nni_metadata(view))
        return lines

    def get_job_statistics(self) -> list[NniStatistic]:
        """Return how many trials have each status."""
        with self._view() as view:
            return nni_statistics(view)

    def get_trial_job(self, trial_job_id: str) -> TrialJob:
        """Return one trial; raise `ExperimentError` if there is none."""
        for job in self.list_trial_jobs():
            if job.trialJobId == trial_job_id:
                return job
        raise ExperimentError(f"there is no trial {trial_job_id} in experiment {self.id}")

    def list_trial_jobs(self) -> list[TrialJob]:
        """Return all trials, in their order."""
        with self._view() as view:
            return [self._job(view, trial) for trial in _trials(view)]

    def get_job_metrics(self, trial_job_id: str | None = None) -> dict[str, list[TrialMetricData]]:
        """Return the results of one trial, or of all, by the trial's id."""
        with self._view() as view:
            trials = [trial for trial in _trials(view) if trial_job_id in (None, trial.trial_id)]
            metrics: dict[str, list[TrialMetricData]] = {trial.trial_id: [] for trial in trials}
            for report in reports_of(view, trials):
                metrics[report.trial.trial_id].append(_metric(report))
        return metrics

    def export_data(self) -> list[TrialResult]:
        """Return parameters and final result of the succeeded trials."""
        with self._view() as view:
            return [
                TrialResult(trial.parameters, trial.final, trial.trial_id)
                for trial in _trials(view)
                if trial.status == "SUCCEEDED"
            ]

    # to change

    def update_trial_concurrency(self, value: int) -> None:
        """Change how many trials run at once."""
        self._update("--trial-concurrency", value)

    def update_max_trial_number(self, value: int) -> None:
        """Change the limit of trials; an experiment that is DONE continues."""
        self._update("--max-trial-number", value, "--continue")

    def update_max_experiment_duration(self, value: str) -> None:
        """Change the limit of running time, such as `2h`; an experiment that is DONE continues."""
        self._update("--max-experiment-duration", value, "--continue")

    def update_search_space(self, value: JsonObject) -> None:
        """Change the search space."""
        with _as_file(value) as path:
            _verb("update", self._path(), "--search-space", path, hidden=path)

    def kill_trial_job(self, trial_job_id: str) -> None:
        """End a trial."""
        _verb("trial", "kill", self._path(), trial_job_id)

    # inside

    def _end_view(self) -> None:
        if self._viewer is not None:
            self._viewer.terminate()
            self._viewer.wait()
            self._viewer = None

    def _began(self, reply: JsonObject, port: int, run_mode: RunMode) -> None:
        self.id, self.port, self._folder = reply["id"], port, Path(reply["folder"])
        print(f"experiment {self.id}; to see its pages: pitchpipe ui {self.id}", file=sys.stderr)
        if run_mode is not RunMode.Detach:
            atexit.register(self.stop)

    def _run_to_end(self, begin: Callable[[], None], *, wait_completion: bool) -> bool | None:
        """Begin and perhaps wait; a signal that would end the script stops the experiment first."""
        asked = threading.Event()

        def stop(_reason: str) -> None:
            asked.set()
            if self._folder is not None:  # else as soon as there is something to stop
                self.stop()

        with DeferredSignals(stop) as signals:
            try:
                begin()
            finally:
                if asked.is_set():
                    self.stop()
            ended_well = self._ended_well() if wait_completion else None
        if signals.is_interrupted:
            raise KeyboardInterrupt
        return ended_well

    def _ended_well(self) -> bool:
        """Wait until the experiment has ended, and print how. Return whether it did not fail."""
        ExperimentFolder(self._path()).wait_until_unmanaged(math.inf)
        print(_verb("status", self._path()), end="", file=sys.stderr)
        return self._summary().status != "ERROR"

    def _path(self) -> Path:
        if self.id is None:
            raise ExperimentError("the experiment was not started")
        given = None if self.config is None else self.config.experiment_working_directory
        path = self._folder or (default_directory() if given is None else absolute(given)) / self.id
        known = () if path.is_dir() else ExperimentFolder.all(default_directory())
        return next((folder.path for folder in known if folder.experiment_id == self.id), path.absolute())

    def _view(self) -> ExperimentView:
        if not self._path().is_dir():
            raise ExperimentError(f"there is no experiment {self.id} in {self._path().parent}")
        return ExperimentView(self._path())

    def _summary(self) -> Summary:
        with self._view() as view:
            return view.summary()

    def _update(self, option: str, value: Any, *more: str) -> None:
        _verb("update", self._path(), option, value, *more)

    def _job(self, view: ExperimentView, trial: TrialRow) -> TrialJob:
        record = json.loads(view.record(trial.sequence_id))
        folder = ExperimentFolder(self._path()).trial(trial.sequence_id)
        known = ("parameter_id", "parameter_source", "parameters", "parameter_index")
        parameters = TrialHyperParameters(**{name: record[name] for name in known if name in record})
        return TrialJob(
            trialJobId=trial.trial_id,
            status=trial.status,
            hyperParameters=[parameters],
            logPath=str(folder),
            startTime=_ms(trial.start_time),
            endTime=_ms(trial.end_time),
            finalMetricData=[*map(_metric, final_reports(trial))],
            stderrPath=str(folder / "stderr"),
            sequenceId=trial.sequence_id,
            message=trial.reason or "--",
        )


def _config_of(tuner: Any) -> AlgorithmConfig:
    """Return the config that makes a tuner again; raise `ExperimentError` if its arguments are not known."""
    if not hasattr(tuner, "hyperopt_config"):
        raise ExperimentError(_TUNER_GIVEN.format(type(tuner).__name__))
    return AlgorithmConfig(**tuner.hyperopt_config)


@contextmanager
def _as_file(data: Any) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        yield path


def _verb(*words: object, hidden: Path | None = None) -> str:
    """Run a verb and return what it prints; raise `ExperimentError` with its message if it fails.

    What it says beside its output, a warning about the config for example, goes to stderr. The user has no file
    `hidden`: what is said of it has no place. Signals of the terminal are for the script, which acts once it has ended.
    """
    command = [*_COMMAND, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    said = done.stderr
    if hidden is not None:
        said = re.sub(rf"{re.escape(str(hidden))}(:\d+)*:? ?| \(line \d+\)", "", said)
    if done.returncode:
        raise ExperimentError(in_words_of_python(said.strip() or done.stdout.strip()))
    print(said, end="", file=sys.stderr)
    return done.stdout


def _ms(seconds: float | None) -> int:
    return -1 if seconds is None else round(seconds * 1000)


def _trials(view: ExperimentView) -> list[TrialRow]:
    return view.trials(TrialQuery(limit=None)).trials


def _metric(report: TrialReport) -> TrialMetricData:
    return TrialMetricData(
        timestamp=_ms(report.time),
        trialJobId=report.trial.trial_id,
        parameterId=None,
        type=report.kind,
        sequence=report.sequence,
        data=report.value,
    )
