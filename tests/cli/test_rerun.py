"""`pitchpipe trial rerun`: a trial again, in this terminal, without touching the experiment."""

import json
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from pitchpipe import Search, uniform
from pitchpipe.cli.app import run
from pitchpipe.cli.verbs.trial_rerun import changed_parameters
from pitchpipe.config import ExperimentConfig

from .conftest import Call, Storing, make_trial

SCRIPT = """\
import os, sys
import pitchpipe
x = pitchpipe.get_next_parameter()["x"]
print("mode", os.environ["MODE"], "in", os.getcwd(), "trial", pitchpipe.get_trial_id())
pitchpipe.report_intermediate_result(x / 2)
if os.path.exists("broken"):
    raise ValueError(f"x is {x}")
pitchpipe.report_final_result(x)
"""


@dataclass
class Again:
    """The outcome of `trial rerun`, with what the trial printed."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def folder(tmp_path: Path, stored: Storing) -> Path:
    """Return the folder of an experiment with one trial, whose result is 0.25."""
    (tmp_path / "trial.py").write_text(SCRIPT)
    config = ExperimentConfig.from_dict(
        {
            "search_space": {"x": {"_type": "choice", "_value": [0.25]}},
            "trial_command": f"{shlex.quote(sys.executable)} trial.py",
            "trial_code_directory": str(tmp_path),
            "trial_environment": {"MODE": "fast"},
            "training_service": {"platform": "local"},
        }
    )
    trials = [make_trial(0, "SUCCEEDED", {"x": 0.25}, 0.25)]
    return stored(more=config.canonical()).write("once", trials).path


@pytest.fixture
def again(capfd: pytest.CaptureFixture[str]) -> Callable[..., Again]:
    """Return a function that runs `trial rerun` in this process."""

    def again(folder: Path, *words: str) -> Again:
        code = run(["trial", "rerun", str(folder), "0", *words])
        return Again(code, *capfd.readouterr())

    return again


def in_a_process(folder: Path, word: str, said: str = "") -> Again:
    """Run `trial rerun` in a process of its own, with `said` on its standard input."""
    command = [sys.executable, "-P", "-m", "pitchpipe", "trial", "rerun", str(folder), "0", word]
    done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=60, check=False)
    return Again(done.returncode, done.stdout, done.stderr)


def test_rerun_has_the_parameters_environment_and_directory_and_changes_nothing(
    folder: Path, tmp_path: Path, again: Callable[..., Again]
) -> None:
    with closing(sqlite3.connect(folder / "experiment.db")) as database:
        [(trial_id, before)] = database.execute("SELECT trial_id, final FROM trials").fetchall()
    files = sorted(path for path in folder.rglob("*") if path.is_file())

    done = again(folder)

    assert done.returncode == 0
    assert done.stdout == f"mode fast in {tmp_path} trial {trial_id}\n"
    assert "final result: 0.25 (in the experiment: 0.25)" in done.stderr
    assert "1 intermediate result: 0.125" in done.stderr
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == files
    with closing(sqlite3.connect(folder / "experiment.db")) as database:
        assert database.execute("SELECT trial_id, final FROM trials").fetchall() == [(trial_id, before)]


def test_rerun_of_a_trial_that_now_fails_shows_why_and_answers_1(
    folder: Path, tmp_path: Path, again: Callable[..., Again]
) -> None:
    (tmp_path / "broken").touch()
    done = again(folder)
    assert done.returncode == 1
    assert "ValueError: x is 0.25" in done.stderr
    assert "it ended with exit code 1" in done.stderr
    assert "it reported no final result" in done.stderr


@pytest.mark.parametrize("value", ["float('nan')", "{'loss': 1}"])
def test_rerun_with_a_result_that_an_experiment_does_not_accept_answers_1(
    folder: Path, tmp_path: Path, again: Callable[..., Again], value: str
) -> None:
    (tmp_path / "trial.py").write_text(SCRIPT.replace("final_result(x)", f"final_result({value})"))
    done = again(folder, "--json")
    said = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert f"it failed: it {said}" in done.stderr
    assert ("reported NaN as its final result" in said) == ("nan" in value)


def test_rerun_with_json_prints_only_the_object_on_stdout(
    folder: Path, tmp_path: Path, again: Callable[..., Again]
) -> None:
    done = again(folder, "--json")
    assert json.loads(done.stdout) == {
        "id": "once",
        "sequence_id": 0,
        "exit_code": 0,
        "error": None,
        "intermediate": [0.125],
        "final": 0.25,
    }
    assert f"mode fast in {tmp_path}" in done.stderr


def test_rerun_of_a_trial_of_a_search_is_refused(directory: Path, call: Call) -> None:
    with Search({"x": uniform(0, 1)}, folder=directory / "own", tuner="Random") as search:
        search.tell(search.ask(), 1)
    refused = call("trial", "rerun", "own", "0")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.count("\n") == 1
    assert "only that program can run one again, with the parameters that" in refused.err
    assert "pitchpipe trial show own 0 prints" in refused.err


def test_rerun_with_pdb_stops_where_it_raises(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    done = in_a_process(folder, "--pdb", "p x * 4\nq\n")
    assert "ValueError: x is 0.25" in done.stdout + done.stderr
    assert "(Pdb) 1.0" in done.stdout


def test_rerun_of_a_function_calls_it_here(tmp_path: Path, by_hand: Callable[..., str]) -> None:
    script = tmp_path / "functions.py"
    script.write_text(
        "from pitchpipe import Experiment, report_intermediate_result\n"
        "def trial(parameters):\n"
        "    report_intermediate_result(1.5)\n"
        "    print('called with', parameters)\n"
        "    return 1 / parameters['x']\n"
        "Experiment(trial, search_space={'x': {'_type': 'choice', '_value': [0]}}, max_trial_number=1,\n"
        "           tuner={'name': 'GridSearch'}, training_service={'platform': 'local'},\n"
        f"           directory={str(tmp_path)!r}, experiment_id='calls').run()\n"
    )
    by_hand(script)

    done = in_a_process(tmp_path / "calls", "--pdb", "p parameters\nq\n")

    assert done.returncode == 1
    assert "called with {'x': 0}" in done.stdout
    assert "ZeroDivisionError" in done.stderr
    assert "(Pdb) {'x': 0}" in done.stdout
    as_json = in_a_process(tmp_path / "calls", "--json")
    assert json.loads(as_json.stdout)["intermediate"] == [1.5]
    assert "called with {'x': 0}" in as_json.stderr
    assert "1 intermediate result: 1.5" in done.stderr


def test_rerun_with_pdb_of_a_shell_command_is_refused(stored: Storing, again: Callable[..., Again]) -> None:
    config = ExperimentConfig.from_dict({"search_space": {}, "trial_command": "sh trial.sh"})
    done = again(
        stored(more=config.canonical()).write("shell", [make_trial(0, "SUCCEEDED", {})]).path, "--pdb"
    )
    assert done.returncode == 2
    assert "--pdb needs a command of the form `python SCRIPT ...`, not: sh trial.sh" in done.stderr


def test_rerun_sets_parameters_and_refuses_unknown_ones(folder: Path, again: Callable[..., Again]) -> None:
    assert "final result: 0.5 (in the experiment: 0.25)" in again(folder, "--set", "x=0.5").stderr
    unknown = again(folder, "--set", "y=1")
    assert unknown.returncode == 2
    assert "--set y: the trial has no such parameter; it has x" in unknown.stderr


def test_each_of_two_parameters_with_one_dotted_name_is_set_by_its_own() -> None:
    given = {"m.lr": 1, "m": {"_name": "a", "lr": 2}}
    assert changed_parameters(given, ["m.lr=3"]) == {"m.lr": 3, "m": {"_name": "a", "lr": 2}}
    assert changed_parameters(given, ["m/lr=3"]) == {"m.lr": 1, "m": {"_name": "a", "lr": 3}}
