"""A place for real experiments: real trials and agents, a real database, and managers in this process or their own."""

from __future__ import annotations

import io
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import psutil
import pytest

from pitchpipe.cli.app import run

from ..dispatcher_threads import dispatchers_on_threads
from ..forked_verbs import ForkedVerb

PATIENCE = 60.0
Started: TypeAlias = "ForkedVerb | subprocess.Popen[str]"

__all__ = ["PATIENCE", "Lab", "Started", "lab"]


class Called(NamedTuple):
    """The outcome of a verb."""

    code: int
    out: str
    err: str


class Lab:
    """A folder with a config and a script, and the experiments made of them."""

    def __init__(self, folder: Path, platform: str = "local") -> None:
        self.folder = folder
        self.directory = folder / "experiments"
        self.platform = platform
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, script: str, name: str = "trial.py", **fields: Any) -> Path:
        """Write a trial script and a config that runs it; return the config's path."""
        (self.folder / name).write_text(script)
        command = f"{shlex.quote(sys.executable)} {name}" if name.endswith(".py") else f"sh {name}"
        service: dict[str, Any] = {"platform": self.platform}
        if self.platform == "ray":
            service["idle_timeout"] = 0
        config = {
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "trial_command": command,
            "max_trial_number": 3,
            "trial_concurrency": 2,
            "seed": 1,
            "tuner": {"name": "Random"},
            "kill_grace": 1,
            "training_service": service,
            **fields,
        }
        path = self.folder / "experiment.yml"
        path.write_text(json.dumps(config))
        return path

    def run(self, *words: str | Path) -> Called:
        """Run a verb on this lab's experiments to its end, in this process."""
        out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err):
            code = run([*map(str, words), "--dir", str(self.directory)])
        for stream in (out, err):
            stream.seek(0)
        return Called(code, out.read(), err.read())

    def start(self, *words: str | Path) -> ForkedVerb:
        """Start a verb in a process of its own, which the test may kill."""
        return ForkedVerb(self.folder, *words, "--dir", self.directory)

    def start_run(self, config: Path) -> ForkedVerb:
        """Start an experiment called `exp`, which prints an object at its end."""
        return self.start("run", config, "--experiment-id", "exp", "--json")

    def start_program(self, config: Path) -> subprocess.Popen[str]:
        """Start the same as users do, with interpreters for all its parts."""
        return subprocess.Popen(
            [
                *(os.path.join(os.path.dirname(sys.executable), "pitchpipe"), "run", config),
                *("--experiment-id", "exp", "--json", "--dir", self.directory),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run_json(self, config: Path) -> dict[str, Any]:
        """Run an experiment called `exp`; return the object that `--json` prints."""
        done = self.run("run", config, "--experiment-id", "exp", "--json")
        assert done.out, done.err
        return json.loads(done.out)

    def resume_json(self) -> dict[str, Any]:
        """Resume the experiment; return the object that `--json` prints."""
        done = self.run("resume", "exp", "--json")
        assert done.out, done.err
        return json.loads(done.out)

    def trials(self) -> list[dict[str, Any]]:
        """Export the trials."""
        done = self.run("export", "exp", "--format", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)["trials"]

    @property
    def database(self) -> Path:
        """The database of the experiment."""
        return self.directory / "exp" / "experiment.db"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the database of the experiment; nothing if there is none yet."""
        if not self.database.exists():
            return []
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as db:
            try:
                return db.execute(sql).fetchall()
            except sqlite3.OperationalError:  # its tables are being made
                return []

    def until(self, condition: Callable[[], bool], process: Started | None = None) -> None:
        """Wait until something is true of the world outside, which gives no notice when it changes."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if process is not None and process.poll() is not None:
                raise AssertionError(f"it ended before: {process.communicate()}")
            if time.monotonic() > deadline:
                raise TimeoutError("waited in vain")
            time.sleep(0.02)

    def let_trials_go(self) -> None:
        """Make the file that trials wait for."""
        (self.folder / "go").touch()

    def agents(self) -> list[psutil.Process]:
        """Return the agents of the trials that run."""
        pids = self.query("SELECT pid FROM trials WHERE status = 'RUNNING'")
        return [psutil.Process(psutil.Process(pid).ppid()) for (pid,) in pids]

    def family(self) -> list[psutil.Process]:
        """Return the agents of the trials that run, and what they have started."""
        agents = self.agents()
        return agents + [child for agent in agents for child in agent.children(recursive=True)]

    def until_reports(self, number: int, process: Started) -> None:
        """Wait until at least so many results are committed."""
        self.until(lambda: self.query("SELECT count(*) FROM metrics") >= [(number,)], process)


@pytest.fixture
def lab(tmp_path: Path, forked_agents: None, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Make a place for experiments of this machine, which start no interpreters but those of trials."""
    dispatchers_on_threads(monkeypatch)
    return Lab(tmp_path / "lab")
