"""`pitchpipe list` and `status`: they need a database and nothing that runs."""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from pitchpipe import Search, uniform
from pitchpipe.runner.trial import FailureKind

from ..stored import results
from .conftest import Call, Storing, make_trial
from .results import NESTED, write_output


def test_list_shows_a_copy_by_the_name_of_its_folder(directory: Path, three: list[Any], call: Call) -> None:
    shutil.copytree(directory / "first", directory / "copied")
    assert {found["id"] for found in json.loads(call("list", "--json").out)} == {"first", "copied"}
    assert call("status", "copied").code == 0


def test_list_as_json_has_numbers(three: list[Any], call: Call) -> None:
    (found,) = json.loads(call("list", "--json").out)
    assert (found["id"], found["best"], found["counts"]) == ("first", 0.75, {"SUCCEEDED": 2, "FAILED": 1})
    assert found["running"] is False


def test_status_as_json_is_the_object_of_run(three: list[Any], directory: Path, call: Call) -> None:
    assert json.loads(call("status", "first", "--json").out) == {
        "id": "first",
        "status": "DONE",
        "folder": str(directory / "first"),
        "counts": {"SUCCEEDED": 2, "FAILED": 1},
        "best": {"trial_id": "T0000", "sequence_id": 0, "value": 0.75, "parameters": NESTED},
        "failures": [
            {"trials": 1, "kind": "USER_ERROR", "reason": "ValueError: too big", "first_sequence_id": 1}
        ],
        "retries": {"USER_ERROR": 1},
        "running": False,
    }


def test_status_of_an_experiment_with_a_manager_is_running(stored: Storing, call: Call) -> None:
    folder = stored(status="RUNNING").write("alive", [])
    folder.own()
    assert call("status", "alive").out.splitlines()[0] == "experiment alive: RUNNING"
    found = json.loads(call("status", "alive", "--json").out)
    assert (found["running"], found["pid"]) == (True, os.getpid())


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ({"rate": None, "remaining": None}, "about 2 h 13 min left"),  # 8 more trials of 1000 results
        ({"rate": None, "remaining": 100.0, "is_bound": True}, "at most 1 min 40 s left"),
    ],
)
def test_status_of_long_trials_tells_how_fast_they_report_and_what_is_left(
    stored: Storing, call: Call, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], left: str
) -> None:
    ended = make_trial(0, "SUCCEEDED", final=0.5, next_sequence=1000)
    running = make_trial(1, "RUNNING", start_time=100.0, end_time=None)
    folder = stored(status="RUNNING").write("long", [ended, running], results(running, [0.5] * 10))
    folder.own()
    state = {"pid": 7, "waiting": {}, **said}
    monkeypatch.setattr("pitchpipe.manager.control.manager_status", lambda _: state)
    assert f"running in process 7, 60 results/min, {left}" in call("status", "long").out.splitlines()


def test_why_shows_all_that_is_waited_for(
    stored: Storing, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stored(status="RUNNING").write("e", [])
    assert call("status", "e", "--why").out.startswith("experiment e waits for nothing: RUNNING")
    folder.own()
    waits = [
        {"what": "trial 0 to end", "since": time.time() + 1000.0, "longest": 600.0, "then": "it is ended"},
        {"what": "room", "since": None, "longest": None, "then": "there is room\x1b[2J"},
    ]
    monkeypatch.setattr("pitchpipe.manager.control.manager_status", lambda _: {"waits": waits})
    head, first, second = (re.split(r" {2,}", line) for line in call("status", "e", "--why").out.splitlines())
    assert head == ["waits for", "since", "at most", "then"]
    assert first == ["trial 0 to end", "0.0 s", "10 min 00 s", "it is ended"]
    assert second == ["room", '"there is room\\u001b[2J"']
    assert json.loads(call("status", "e", "--why", "--json").out) == waits


def test_status_before_the_first_end_names_the_best_intermediate_result(stored: Storing, call: Call) -> None:
    running = make_trial(0, "RUNNING", start_time=100.0, end_time=None)
    folder = stored(status="RUNNING").write("young", [running], results(running, [0.5, 0.625]))
    folder.own()
    out = call("status", "young").out
    assert (
        "best: none, no trial has succeeded yet\nbest intermediate result: 0.625 (trial 0, after 2 results)"
        in out
    )
    found = json.loads(call("status", "young", "--json").out)
    assert found["best_intermediate"] == {"sequence_id": 0, "sequence": 1, "value": 0.625}


def test_status_of_a_stopped_experiment_whose_manager_still_ends_does_not_say_how_to_continue(
    stored: Storing, call: Call
) -> None:
    folder = stored(status="STOPPED").write("e", [])
    folder.own()
    assert "to continue" not in call("status", "e").out


@pytest.mark.parametrize(
    ("printed", "failed", "verb"),
    [
        ("Epoch 1\n", {"error": "ValueError: 1", "kind": FailureKind.USER_ERROR}, "log"),
        (None, {"error": "Traceback\nValueError: 1", "kind": FailureKind.USER_ERROR}, "show"),
        ("Epoch 1\n", {"reason": "reported NaN", "kind": FailureKind.NAN}, "show"),
        ("Epoch 1\n", {"reason": "no final result", "kind": FailureKind.USER_ERROR}, "log"),
        ("", {"reason": "no final result", "kind": FailureKind.USER_ERROR}, "show"),
        ("Epoch 1\n", {"error": "its agent is gone", "kind": FailureKind.INFRA}, "show"),
    ],
)
def test_a_failure_is_followed_by_the_command_that_explains_it(
    printed: str | None, failed: dict[str, Any], verb: str, stored: Storing, call: Call
) -> None:
    files = stored().write("e1", [make_trial(3, "FAILED", **failed)]).trial(3)
    if printed is not None:
        write_output(files, printed)
    assert f"(pitchpipe trial {verb} e1 3)" in call("status", "e1").out


def test_trials_of_a_search_have_no_process_to_speak_of(directory: Path, call: Call) -> None:
    with Search({"x": uniform(0, 1)}, folder=directory / "own", tuner="Random") as search:
        search.fail(search.ask(), "diverged")
        search.fail(search.ask(), "")
        search.give_back(search.ask())
        search.tell(search.ask(), 1)
    lines = call("status", "own").out.splitlines()
    assert [line for line in lines if "failed" in line or "again" in line] == [
        "trials: 3 (1 succeeded, 2 failed)",
        "begun again: 1 attempt, given back or reclaimed",
        "trial 0 failed (USER_ERROR): diverged (pitchpipe trial show own 0)",
        "trial 1 failed (USER_ERROR): failed (pitchpipe trial show own 1)",
    ]
    assert "exit code" not in call("trial", "show", "own", "2").out
