"""`pitchpipe compare`, `delete` and `completion`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pitchpipe.store.folder import ExperimentFolder

from .conftest import Call, Storing, make_trial


@pytest.fixture
def two(stored: Storing) -> None:
    """`one` (maximize; 0.5, 0.9, a failure, 0.7) and `two` (maximize; 0.8), with another tuner."""
    finals = [0.5, 0.9, None, 0.7]
    stored(more={"tuner": {"name": "TPE"}, "trialConcurrency": 2, "seed": 1}).write(
        "one",
        [make_trial(n, "FAILED" if v is None else "SUCCEEDED", final=v) for n, v in enumerate(finals)],
    )
    stored(more={"tuner": {"name": "Random"}}).write("two", [make_trial(0, "SUCCEEDED", final=0.8)])


@pytest.mark.usefixtures("two")
def test_compare_tells_the_best_after_the_same_number_and_what_differs(call: Call) -> None:
    comparison = json.loads(call("compare", "one", "two", "--json").out)
    assert comparison["best_after"] == {"1": [0.5, 0.8], "2": [0.9, None]}
    assert comparison["differences"] == {"tuner.name": ["TPE", "Random"], "trial_concurrency": [2, None]}
    assert [(side["id"], side["trials"], side["best"]) for side in comparison["experiments"]] == [
        ("one", 4, 0.9),
        ("two", 1, 0.8),
    ]


def test_compare_tells_a_null_option_from_none_and_text_from_other_values(
    call: Call, stored: Storing
) -> None:
    for name, args in (("a", {"x": None, "y": "1", "z": [None, "true"]}), ("b", {"y": 1, "z": [None, True]})):
        stored(more={"tuner": {"name": "TPE", "classArgs": args}}).write(
            name, [make_trial(0, "SUCCEEDED", final=1.0)]
        )
    rows = [line.split() for line in call("compare", "a", "b").out.splitlines()]
    assert ["tuner.class_args.x", "null", "-"] in rows
    assert ["tuner.class_args.y", '"1"', "1"] in rows
    assert ["tuner.class_args.z", "null,", '"true"', "null,", "true"] in rows


def test_compare_minimizes_where_the_objective_does(call: Call, stored: Storing) -> None:
    trials = [make_trial(n, "SUCCEEDED", final=v) for n, v in enumerate([0.5, 0.9, 0.3])]
    for name in ("a", "b"):
        stored(objectives=[{"name": "default", "direction": "minimize"}]).write(name, trials)
    comparison = json.loads(call("compare", "a", "b", "--json").out)
    assert comparison["best_after"] == {"1": [0.5, 0.5], "2": [0.5, 0.5]}
    assert comparison["experiments"][0]["best"] == 0.3


@pytest.mark.usefixtures("two")
def test_delete_removes_the_folders_and_nothing_else(call: Call, directory: Path) -> None:
    called = call("delete", "one", "--yes")
    assert (called.code, called.out) == (0, "experiment one is deleted\n")
    assert sorted(os.listdir(directory)) == ["two"]


@pytest.mark.usefixtures("two")
def test_delete_of_a_link_removes_what_it_leads_to_once(call: Call, directory: Path) -> None:
    (directory / "alias").symlink_to("one")
    called = call("delete", "alias", directory / "one", directory / "alias", "--yes")
    assert (called.code, called.err) == (0, "")
    assert sorted(os.listdir(directory)) == ["two"]


@pytest.mark.usefixtures("two")
def test_delete_without_a_terminal_and_without_yes_deletes_nothing(call: Call, directory: Path) -> None:
    called = call("delete", "one")
    assert called.code == 2
    assert "add --yes" in called.err
    assert sorted(os.listdir(directory)) == ["one", "two"]


@pytest.mark.usefixtures("two")
def test_delete_refuses_one_that_runs_and_spares_the_others(call: Call, directory: Path) -> None:
    folder = ExperimentFolder(directory / "two")
    folder.own()
    try:
        called = call("delete", "one", "two", "--yes")
    finally:
        folder.disown()
    assert called.code == 1
    assert f"experiment two is running in process {os.getpid()}" in called.err
    assert sorted(os.listdir(directory)) == ["one", "two"]


def test_delete_refuses_one_whose_manager_is_gone(call: Call, stored: Storing, directory: Path) -> None:
    stored(status="RUNNING").write("left", [])
    called = call("delete", "left", "--yes")
    assert called.code == 1
    assert "pitchpipe stop left" in called.err
    assert (directory / "left").is_dir()


@pytest.mark.usefixtures("two")
def test_completion_of_a_shell_knows_verbs_and_experiments(directory: Path) -> None:
    def completed(words: str, place: int) -> list[str]:
        command = [sys.executable, "-P", "-c", "from pitchpipe.cli.app import main; main()"]
        environment = {
            **os.environ,
            "PITCHPIPE_DIR": str(directory),
            "_PITCHPIPE_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(place),
        }
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [line.partition(",")[2] for line in found.stdout.splitlines()]

    assert completed("pitchpipe comp", 1) == ["compare", "completion"]
    assert completed("pitchpipe status tw", 2) == ["two"]
    assert completed("pitchpipe compare one ", 3) == ["one", "two"]


def test_completion_prints_a_script_that_bash_takes(call: Call) -> None:
    script = call("completion", "bash").out
    assert "_PITCHPIPE_COMPLETE=bash_complete" in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
