"""`pitchpipe list` and `status`: they need a database and nothing that runs."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe import Search, uniform
from pitchpipe.runner.trial import FailureKind

from ..server.made_stores import MadeExperiment, a_trial
from .results import NESTED, write_output


def test_list_shows_the_newest_first_with_the_best(
    stored: Callable[..., Any], three: list[Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored(created=2000.0, status="STOPPED").write("second", [trial_of(0, "SYS_CANCELED")])
    lines = call("list").out.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["second", "STOPPED", "1", "12"],
        ["first", "DONE", "3", "0.75"],
    ]
    assert lines[2].endswith("mine")


def test_list_shows_a_copy_by_the_name_of_its_folder(
    directory: Path, three: list[Any], call: Callable[..., Any]
) -> None:
    shutil.copytree(directory / "first", directory / "copied")
    assert {found["id"] for found in json.loads(call("list", "--json").out)} == {"first", "copied"}
    assert call("status", "copied").code == 0


def test_list_as_json_has_numbers(three: list[Any], call: Callable[..., Any]) -> None:
    (found,) = json.loads(call("list", "--json").out)
    assert (found["id"], found["best"], found["counts"]) == ("first", 0.75, {"SUCCEEDED": 2, "FAILED": 1})
    assert found["running"] is False


def test_list_continues_over_a_database_that_cannot_be_read(
    directory: Path, three: list[Any], call: Callable[..., Any]
) -> None:
    (directory / "broken").mkdir()
    (directory / "broken" / "experiment.db").write_bytes(b"rubbish" * 1000)
    called = call("list")
    assert called.code == 0
    assert "UNREADABLE" in called.out
    assert "first" in called.out


def test_list_of_an_empty_directory_is_a_sentence(directory: Path, call: Callable[..., Any]) -> None:
    called = call("list")
    assert (called.code, called.out) == (0, f"there are no experiments in {directory}\n")


def test_status_tells_best_failures_and_folder(
    three: list[Any], directory: Path, call: Callable[..., Any]
) -> None:
    called = call("status")
    lines = called.out.splitlines()
    assert called.err == f"experiment first (the newest in {directory})\n"
    assert lines[0] == "experiment first (mine): DONE"
    assert "trials: 3 of 10 (2 succeeded, 1 failed)" in lines
    assert "best: 0.75 (trial 0, T0000)" in lines
    assert [line for line in lines if "momentum" in line] == ["  solver.momentum  0.9"]
    failure = "trial 1 failed (USER_ERROR, exit code 1, 2 attempts): ValueError: too big (pitchpipe trial log first 1)"
    at = lines.index(failure)
    assert lines[at - 1 : at + 3] == [
        "run again: 1 USER_ERROR attempt",
        failure,
        "  Traceback",
        "    File ...",
    ]
    assert lines[-1] == f"everything is in {directory / 'first'}"


def test_status_as_json_is_the_object_of_run(
    three: list[Any], directory: Path, call: Callable[..., Any]
) -> None:
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


def test_further_kinds_of_failures_are_counted_with_the_command_that_lists_them(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    letters = "abcdefgg"
    failed = [
        trial_of(n, "FAILED", reason=f"no {letter}", kind=FailureKind.USER_ERROR)
        for n, letter in enumerate(letters)
    ]
    stored().write("many", failed)
    lines = call("status", "many").out.splitlines()
    assert "2 more trials failed in 2 other ways (pitchpipe trials many --status FAILED)" in lines
    assert call("trials", "many", "--status", "FAILED").code == 0


def test_status_of_an_experiment_without_its_manager_says_how_to_continue(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored(status="RUNNING").write("gone", [trial_of(0, "RUNNING", end_time=None)])
    assert call("status", "gone").out.splitlines()[0] == (
        "experiment gone: RUNNING, but its manager is gone: pitchpipe resume gone"
    )
    assert "RUNNING (manager gone)" in call("list").out


def test_status_of_an_experiment_with_a_manager_is_running(
    stored: Callable[..., Any], call: Callable[..., Any]
) -> None:
    folder = stored(status="RUNNING").write("alive", [])
    me = {"pid": os.getpid(), "host": socket.gethostname(), "create_time": psutil.Process().create_time()}
    (folder.path / "manager.json").write_text(json.dumps(me))
    assert call("status", "alive").out.splitlines()[0] == "experiment alive: RUNNING"
    found = json.loads(call("status", "alive", "--json").out)
    assert (found["running"], found["pid"]) == (True, os.getpid())


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"status": "STOPPED"}, "to continue: pitchpipe resume e"),
        (
            {"status": "ERROR"},
            "to continue after fixing the code (a changed config needs a new run): pitchpipe resume e",
        ),
        ({"status": "DONE"}, None),
        ({"status": "VIEWED"}, None),
        ({"status": "RUNNING"}, None),  # the manager is gone: the first line says it
        ({"status": "STOPPED", "more": {}}, None),  # a search, which its own program continues
    ],
)
def test_status_says_how_to_continue_what_can_be_continued(
    stored: Callable[..., Any], call: Callable[..., Any], fields: dict[str, Any], told: str | None
) -> None:
    folder = stored(**fields).write("e", [])
    assert call("status", "e").out.splitlines()[-1] == (told or f"everything is in {folder.path}")


def test_status_of_a_stopped_experiment_whose_manager_still_ends_does_not_say_how_to_continue(
    stored: Callable[..., Any], call: Callable[..., Any]
) -> None:
    folder = stored(status="STOPPED").write("e", [])
    me = {"pid": os.getpid(), "host": socket.gethostname(), "create_time": psutil.Process().create_time()}
    (folder.path / "manager.json").write_text(json.dumps(me))
    assert "to continue" not in call("status", "e").out


def test_status_of_a_failed_experiment_shows_reason_and_traceback(
    stored: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored(status="ERROR", reason="the tuner raised", error="Traceback\nKeyError: 3").write("bad", [])
    out = call("status", "bad").out
    assert "reason: the tuner raised\n  Traceback\n  KeyError: 3\n" in out
    assert "best: none, there are no trials" in out


def test_list_of_a_folder_that_does_not_exist_says_so(tmp_path: Path, call: Callable[..., Any]) -> None:
    called = call("list", "--dir", tmp_path / "none", "--json")
    assert (called.code, json.loads(called.out)) == (0, [])
    assert called.err == f"there is no folder {tmp_path / 'none'}\n"
    assert call("list", "--dir", tmp_path, "--json").err == ""


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (
            ["CUDA out of memory at width 55", "CUDA out of memory at width 302"],
            ", such as: CUDA out of memory at width 55",
        ),
        (["exit code 3", "exit code 3"], ": exit code 3"),
    ],
)
def test_reason_with_its_own_numbers_is_one_of_several(
    reasons: list[str],
    said: str,
    stored: Callable[..., Any],
    trial_of: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    trials = [
        trial_of(n, "FAILED", reason=reason, kind="OOM", exit_code=3) for n, reason in enumerate(reasons)
    ]
    stored().write("e", trials)
    assert "2 trials failed (OOM" in (out := call("status", "e").out)
    assert f"){said} (" in out


def test_region_where_most_trials_fail_is_named(directory: Path, call: Callable[..., Any]) -> None:
    experiment = MadeExperiment(directory / "oom", status="DONE")
    good = [a_trial(n, value=0.5) for n in range(8)]
    experiment.commit(*good, *(a_trial(n, "FAILED", kind=FailureKind.OOM) for n in range(8, 14)))
    lines = call("status", "oom").out.splitlines()
    assert "most trials with lr above 0.7 fail (out of memory); the search avoids them" in lines


def test_failures_that_differ_in_numbers_only_are_summed_up(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    killed = [
        trial_of(
            n,
            "FAILED",
            reason="killed by SIGSEGV",
            exit_code=-11,
            kind=FailureKind.KILLED,
            error=f"at 0x{n:x}",
            failed={"KILLED": 1},
        )
        for n in range(2)
    ]
    lost = trial_of(
        2, "FAILED", reason="its agent is gone", kind=FailureKind.INFRA, failed={"INFRA": 4}, attempt=4
    )
    write_output(stored().write("first", [*killed, lost]).trial(0), "Epoch 1\n")
    lines = call("status", "first").out.splitlines()
    assert [line for line in lines if "failed" in line or "again" in line] == [
        "trials: 3 of 10 (3 failed)",
        "run again: 3 INFRA attempts",
        "2 trials failed (KILLED), such as: killed by SIGSEGV: at 0x0 (pitchpipe trial log first 0)",
        "trial 2 failed (INFRA, 4 attempts): its agent is gone (pitchpipe trial show first 2)",
    ]


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
    printed: str | None,
    failed: dict[str, Any],
    verb: str,
    stored: Callable[..., Any],
    trial_of: Callable[..., Any],
    call: Callable[..., Any],
) -> None:
    files = stored().write("e1", [trial_of(3, "FAILED", **failed)]).trial(3)
    if printed is not None:
        write_output(files, printed)
    assert f"(pitchpipe trial {verb} e1 3)" in call("status", "e1").out


def test_a_script_that_imports_what_nni_alone_has_gets_a_hint(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    reason = "ModuleNotFoundError: No module named 'nni.retiarii'"
    stored().write("first", [trial_of(0, "FAILED", reason=reason, error=reason, kind=FailureKind.IMPORT)])
    hint = "docs/nni.md lists the names of NNI that have a counterpart"
    assert f"  hint: {hint}\n" in call("status", "first").out
    assert f"hint          {hint}\n" in call("trial", "show", "first", "0").out


def test_trials_of_a_search_have_no_process_to_speak_of(directory: Path, call: Callable[..., Any]) -> None:
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
