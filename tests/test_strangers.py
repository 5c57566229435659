"""A folder that came from elsewhere: only the documented verbs run its code.

Everything in it that could run leaves a mark: the module of its tuner, its pickles, its trial command.
"""

from __future__ import annotations

import io
import json
import pickle
import shlex
import shutil
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, cast

import pytest

from pitchpipe.cli.app import run
from pitchpipe.manager.control import ControlError, change_experiment
from pitchpipe.store import ExperimentFolder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # many processes: this bounds a hang, not their time
    pytest.mark.usefixtures("forked_agents"),
]

TUNER = """
import time

from pitchpipe import Tuner

open({marks!r} + "/tuner", "w").close()


class Trap:
    def __reduce__(self):
        return open, ({marks!r} + "/checkpoint", "w")


class Mine(Tuner):
    def __init__(self):
        self.trap = Trap()

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id, **kwargs):
        time.sleep(0.3)  # as if it computed: now a checkpoint is worth its cost
        return {{"x": parameter_id / 10}}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""
TRIAL = """
import pitchpipe

open({marks!r} + "/trial", "w").close()
pitchpipe.report_intermediate_result(0.5)
pitchpipe.report_final_result(pitchpipe.get_next_parameter()["x"])
"""


class Trap:
    """What makes a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self) -> Any:
        return Path(self.mark).write_text, ("ran",)


class Stranger:
    """The folder of an experiment `e` in `runs`, and the marks that its code leaves."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / "runs"
        self.folder = self.runs / "e"
        self.marks = path / "marks"

    @property
    def ran(self) -> set[str]:
        return {mark.name for mark in self.marks.iterdir()}

    def forget(self) -> None:
        for mark in self.marks.iterdir():
            mark.unlink()

    def run(self, *words: object, code: int | None = 0) -> str:
        """Call a verb in this process: a mark that it leaves is the same."""
        said = io.TextIOWrapper(io.BytesIO(), write_through=True)  # some verbs write bytes
        with chdir(self.path), redirect_stdout(said), redirect_stderr(said):
            found = run([*map(str, words), *(() if "validate" in words else ("--dir", str(self.runs)))])
        text = cast(io.BytesIO, said.buffer).getvalue().decode()
        assert code in (None, found), text
        return text

    def change(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.folder / "experiment.db")) as db, db:
            for statement in statements:
                db.execute(statement)

    def abandon(self, *, of_functions: bool = False) -> None:
        """Make it look as if its manager was killed before the last trial began."""
        self.change(
            "UPDATE experiment SET status = 'RUNNING', end_time = NULL",
            "UPDATE trials SET status = 'RUNNING', start_time = NULL, end_time = NULL, attempt = 1, final = NULL"
            " WHERE sequence_id = 1",
        )
        shutil.rmtree(self.folder / "trials" / "1", ignore_errors=True)
        if of_functions:
            self.change("UPDATE experiment SET config = json_remove(config, '$.trialCommand')")


def _made(path: Path) -> Stranger:
    made = Stranger(path)
    made.marks.mkdir(parents=True)
    code = path / "code"
    code.mkdir()
    (code / "mine.py").write_text(TUNER.format(marks=str(made.marks)))
    (code / "trial.py").write_text(TRIAL.format(marks=str(made.marks)))
    config = {
        "trial_command": f"{shlex.quote(sys.executable)} trial.py",
        "max_trial_number": 2,
        "trial_concurrency": 1,
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "tuner": {"class_name": "mine.Mine", "code_directory": "."},
        "assessor": {"name": "none"},
        "training_service": {"platform": "local"},
        "orphan_timeout": 1,
    }
    (code / "experiment.yml").write_text(json.dumps(config))
    made.runs.mkdir()
    made.run("run", code / "experiment.yml", "--experiment-id", "e", "--quiet")
    folder = ExperimentFolder(made.folder)
    folder.stopper_file.write_bytes(pickle.dumps(Trap(made.marks / "stopper")))
    folder.function_file.write_bytes(pickle.dumps(Trap(made.marks / "function")))
    made.forget()
    return made


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    return _made(tmp_path_factory.mktemp("stranger"))


@pytest.fixture
def stranger(original: Stranger) -> Iterator[Stranger]:
    """Yield the folder as it was made."""
    kept = original.path / "kept"
    shutil.copytree(original.folder, kept)
    original.forget()
    yield original
    shutil.rmtree(original.folder, ignore_errors=True)
    kept.rename(original.folder)


def test_verbs_that_run_the_code_do(stranger: Stranger) -> None:
    resume = ["resume", "e", "--max-trial-number", "3", "--quiet", "--dir", str(stranger.runs)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pitchpipe", *resume], capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr  # its stopper is none
    assert stranger.ran >= {"checkpoint", "stopper"}
    ExperimentFolder(stranger.folder).stopper_file.unlink()
    stranger.run("resume", "e", "--quiet")
    assert stranger.ran == {"checkpoint", "stopper", "trial", "tuner"}
    stranger.forget()
    stranger.run("trial", "rerun", "e", "0")
    assert stranger.ran == {"trial"}
    stranger.run("validate", stranger.path / "code" / "experiment.yml")
    assert stranger.ran == {"trial", "tuner"}


READING: tuple[tuple[object, ...], ...] = (
    ("list",),
    ("status", "e"),
    ("trials", "e"),
    ("trial", "show", "e", "1"),
    ("trial", "show", "e", "1", "--why"),
    ("trial", "log", "e", "1"),
    ("export", "e", "--format", "json"),
    ("report", "e", "--output", "report.html"),
    ("compare", "e", "e"),
    ("doctor",),
    ("update", "e", "--max-trial-number", "9"),
    ("update", "e", "--search-space", "space.json"),
    ("import", "e", "--file", "results.json"),
    ("trial", "add", "e", "--parameters", '{"x": 0.5}'),
    ("trial", "kill", "e", "1"),
    ("stop", "e"),
    ("stop", "--all"),
)


@pytest.mark.parametrize("is_abandoned", [False, True])
def test_verbs_that_read_or_refuse_do_not(stranger: Stranger, is_abandoned: bool) -> None:
    (stranger.path / "space.json").write_text('{"x": {"_type": "uniform", "_value": [0, 2]}}')
    (stranger.path / "results.json").write_text('[{"parameter": {"x": 0.5}, "value": 1}]')
    (stranger.path / "report.html").unlink(missing_ok=True)
    if is_abandoned:
        stranger.abandon()
    for words in READING[:-2] if is_abandoned else READING:
        stranger.run(*words, code=None)
        assert (words, stranger.ran) == (words, set())
    assert (stranger.path / "report.html").exists()


@pytest.mark.parametrize("of_functions", [False, True])
def test_what_its_manager_left_is_stopped_and_deleted_without_its_code(
    stranger: Stranger, of_functions: bool
) -> None:
    stranger.abandon(of_functions=of_functions)
    assert "pitchpipe stop e" in stranger.run("delete", "e", "--yes", code=1)
    assert "is STOPPED" in stranger.run("stop", "e")
    assert json.loads(stranger.run("status", "e", "--json"))["counts"].get("RUNNING", 0) == 0
    assert not ((stranger.folder / "logs") / "dispatcher.out").read_text().strip()
    stranger.run("delete", "e", "--yes")
    assert (stranger.ran, stranger.folder.exists()) == (set(), False)


def test_results_that_came_while_it_was_stopped_reach_the_tuner_later(stranger: Stranger) -> None:
    """The commands of the silent end are recorded: the next dispatcher gets them, and the tuner stays reproducible."""
    ExperimentFolder(stranger.folder).stopper_file.unlink()
    stranger.abandon()
    stranger.run("stop", "e")
    stranger.run("resume", "e", "--max-trial-number", "4", "--quiet")
    shown = json.loads(stranger.run("status", "e", "--json"))
    assert (shown["status"], shown["counts"]["SUCCEEDED"]) == ("DONE", 4)
    assert "not reproducible" not in (stranger.folder / "logs" / "manager.log").read_text()


@contextmanager
def served(directory: Path) -> Iterator[str]:
    command = [sys.executable, "-P", "-m", "pitchpipe.server", str(directory), "--end-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["url"]
        server.communicate(timeout=30)


def asked(address: str, method: str = "GET", body: Any = None) -> int:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            reply.read()
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


PAGES = ("", "/trials", "/trials/1", "/plots", "/logs", "/files", "/settings", "/compare")
ROUTES = ["", "/config", "/best", "/history", "/failures", "/importance", "/health"]
ROUTES += ["/trials", "/trials/1", "/logs"]


def test_pages_and_api_run_nothing(stranger: Stranger) -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 2]}}
    with served(stranger.runs) as url:
        api = f"{url}/api/v1/experiments/e"
        assert {asked(f"{api}{route}") for route in ROUTES} == {200}
        assert asked(f"{url}/ui/e") == 200
        for page in PAGES:
            asked(f"{url}/ui/e{page}")
        assert asked(api, "PATCH", {"search_space": space}) == 409
        assert asked(api, "PATCH", {"max_trial_number": 5}) == 200
        for action in ("stop", "trials/1/rerun", "trials/1/kill"):
            assert asked(f"{api}/{action}", "POST", {}) == 409
    assert stranger.ran == set()


def test_a_new_search_space_is_refused_before_the_tuner_is_asked(stranger: Stranger) -> None:
    folder = ExperimentFolder(stranger.folder)
    with pytest.raises(ControlError, match="its tuner takes a search space only while it does"):
        change_experiment(folder, {"search_space": {"x": {"_type": "uniform", "_value": [0, 2]}}})
    assert stranger.ran == set()
