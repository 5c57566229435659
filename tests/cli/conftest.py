"""Fixtures for the verbs: stored experiments, and the command line in this process or in its own."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.cli.app import run
from pitchpipe.compat.nni import nnictl
from pitchpipe.runner.effects import AttemptRow, MetricRow
from pitchpipe.runner.trial import FailureKind, Trial
from pitchpipe.store.folder import ExperimentFolder

from ..conftest import described, marked_processes
from ..dispatcher_threads import dispatchers_on_threads
from ..forked_agents import NURSERY
from ..stored import MadeExperiment, a_trial, results
from .results import FRONT, NESTED, write_output

MARK = "PPTEST_CLI"
SECONDS_TO_LEAVE = 30.0

QUICK = """\
search_space:
  x: {_type: uniform, _value: [0, 1]}
trial_command: sh trial.sh
max_trial_number: 4
trial_concurrency: 2
kill_grace: 1s
seed: 1
tuner: {name: Random}
training_service: {platform: local}
"""
TRIAL = """\
x=$(sed -n 's/.*"x": *\\([^,}]*\\).*/\\1/p' "$PITCHPIPE_PARAMETERS" | head -n 1)
echo "x is $x"
echo "{\\"intermediate\\": $x}" >> "$PITCHPIPE_REPORTS"
echo "{\\"final\\": $x}" >> "$PITCHPIPE_REPORTS"
"""


# What fixtures return: a function that runs a command line, starts one, stores an experiment, names processes.
Call = Callable[..., "Called"]
Start = Callable[..., "Started"]
Storing = Callable[..., "Stored"]
Left = Callable[[], list[str]]


@dataclass
class Stored:
    """One experiment to be stored."""

    directory: Path
    objectives: list[dict[str, str]] = field(
        default_factory=lambda: [{"name": "default", "direction": "maximize"}]
    )
    status: str = "DONE"
    reason: str = ""
    error: str = ""
    created: float = 1000.0
    name: str | None = None
    more: dict[str, Any] = field(default_factory=lambda: {"trialCommand": "sh trial.sh"})

    def write(
        self,
        experiment_id: str,
        trials: list[Trial],
        metrics: list[MetricRow] | None = None,
        attempts: list[AttemptRow] | None = None,
        superseded: list[tuple[int, int, int]] | None = None,
    ) -> ExperimentFolder:
        config = {"objectives": self.objectives, "maxTrialNumber": 10, "killGrace": 1.0, **self.more}
        place = self.directory / experiment_id
        made = MadeExperiment(place, config, self.status, self.name, created=self.created)
        changes = {"metrics": metrics or [], "attempts": attempts or [], "superseded": superseded or []}
        made.commit(*trials, **changes, reason=self.reason, error=self.error, run_time=12.5)
        made.store.close()
        return made.folder


def make_trial(number: int, status: str, parameters: Any = None, final: Any = None, **more: Any) -> Trial:
    """Return a trial that took 10 s and has a final result: a number, or a value for each metric."""
    values = (
        tuple(final.values()) if isinstance(final, dict) else (float(final),) if final is not None else None
    )
    given = {
        "parameters": {"x": number / 10} if parameters is None else parameters,
        "created": 1000.0 + number,
        "start_time": 1000.0 + number,
        "end_time": 1010.0 + number,
        "kind": None,
        "final": None if final is None else json.dumps(final),
        "values": values,
    }
    return a_trial(number, status, **{**given, **more})


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the default directory of experiments."""
    path = tmp_path / "experiments"
    monkeypatch.setenv("PITCHPIPE_DIR", str(path))
    return path


@pytest.fixture
def stored(directory: Path) -> Callable[..., Stored]:
    """Return a function that makes a `Stored` in the directory."""
    return lambda **fields: Stored(**{"directory": directory, **fields})


@dataclass
class Called:
    """The outcome of a command line."""

    code: int
    out: str
    err: str


def call_nnictl(capsys: pytest.CaptureFixture[str], *words: object) -> Called:
    """Run the script `nnictl` in this process, which ends with its streams and its SIGINT as they were."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["nnictl", *map(str, words)])
        patched.setattr("pitchpipe.cli.app.open_streams", lambda: None)  # they belong to capsys
        with pytest.raises(SystemExit) as ended:
            nnictl()
        signal.signal(signal.SIGINT, before)  # a verb that has done its work ignores it
    assert isinstance(ended.value.code, int)
    return Called(ended.value.code, *capsys.readouterr())


@pytest.fixture
def call(
    request: pytest.FixtureRequest,
    forked_agents: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Called]:
    """Return a function that runs a command line in this process, which hosts the dispatcher as well."""
    if request.node.get_closest_marker("dispatcher_process") is None:
        dispatchers_on_threads(monkeypatch)

    def call(*words: object) -> Called:
        code = run([str(word) for word in words])
        return Called(code, *capsys.readouterr())

    return call


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a config whose 4 trials end at once, two at a time; its folder contains their script."""
    (tmp_path / "trial.sh").write_text(TRIAL)
    path = tmp_path / "experiment.yml"
    path.write_text(QUICK)
    return path


class Marked:
    """Processes that inherited a mark in their environment."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex

    def left(self) -> list[str]:
        """Return the processes that still run after 30 s."""
        _, alive = psutil.wait_procs(self._marked(), timeout=SECONDS_TO_LEAVE)
        return [described(process) for process in alive]

    def end(self) -> None:
        for process in self._marked():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _marked(self) -> list[psutil.Process]:
        return marked_processes(f"{MARK}={self.mark}")


class Started(Marked):
    """A command line in a separate process, and everything that it started."""

    def __init__(self, words: list[str]) -> None:
        super().__init__()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pitchpipe", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, MARK: self.mark},
        )

    def finish(self, timeout: float = 60.0) -> Called:
        out, err = self.process.communicate(timeout=timeout)
        return Called(self.process.returncode, out, err)

    def end(self) -> None:
        super().end()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def left(nursery: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """Yield a function that names what command lines in this process started and left; it ends with the test."""
    marked = Marked()
    NURSERY.requests()  # begins without the mark: it outlives the test
    monkeypatch.setenv(MARK, marked.mark)
    yield marked.left
    marked.end()


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    """Yield a function that starts a command line; its remaining processes are killed after the test."""
    all_started: list[Started] = []

    def start(*words: object) -> Started:
        all_started.append(Started([str(word) for word in words]))
        return all_started[-1]

    yield start
    for started in all_started:
        started.end()


def until(condition: Callable[[], Any], timeout: float = 60.0) -> Any:
    """Return the value of a condition about other processes' files, once it is true."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found


@pytest.fixture
def three(stored: Storing) -> list[Any]:
    """Three trials: one that is best, one that failed, one without any end."""
    failed = {
        "error": "Traceback\n  File ...\nValueError: too big",
        "reason": "ValueError: too big",
        "exit_code": 1,
        "kind": FailureKind.USER_ERROR,
        "failed": {"USER_ERROR": 2},
        "attempt": 2,
    }
    trials = [
        make_trial(0, "SUCCEEDED", NESTED, 0.75),
        make_trial(1, "FAILED", NESTED, **failed),
        make_trial(2, "SUCCEEDED", NESTED, 0.5),
    ]
    metrics = results(trials[0], [0.5, math.nan, 0.7])
    metrics.append(MetricRow(trial=trials[0], attempt=1, kind="FINAL", sequence=0, value="0.75", time=0.0))
    write_output(stored(name="mine").write("first", trials, metrics).trial(1), "Epoch 1\n")
    return trials


@pytest.fixture
def front(stored: Storing) -> None:
    """Three trials on a front, one that violates a limit."""
    values = [(4.0, 0.9, 5.0), (0.0, 1.0, 21.0), (2.0, 0.8, 20.0), (1.0, 0.1, 1.0)]
    finals = [dict(zip(("loss", "f1", "ms"), each, strict=True)) for each in values]
    stored(objectives=FRONT).write(
        "front", [make_trial(n, "SUCCEEDED", None, f) for n, f in enumerate(finals)]
    )
