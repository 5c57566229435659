"""`pitchpipe stop` says what became of the experiment, also when it could not be ended."""

import pytest

from pitchpipe.executors.errors import ExecutorError
from pitchpipe.manager.manager import Manager

from .conftest import Call, Storing

ABANDONED = {
    "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
    "trialCommand": "true",
    "trialConcurrency": 1,
    "trainingService": {"platform": "local"},
}


def fail_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(manager: Manager) -> None:
        raise error

    monkeypatch.setattr(Manager, "wait", fail)


def test_experiment_whose_manager_fails_is_not_said_to_be_stopped(
    stored: Storing, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(status="RUNNING", more=ABANDONED).write("e1", [])
    fail_with(RuntimeError("no such move"), monkeypatch)
    called = call("stop", "e1")
    assert called.code == 1
    assert (
        "experiment e1 was not stopped properly: the manager failed: RuntimeError: no such move" in called.err
    )
    assert "manager.log" in called.err
    assert "STOPPED" not in called.out
    assert "ERROR" in call("status", "e1").out


def test_experiment_whose_trials_are_unreachable_is_stopped(
    stored: Storing, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(status="RUNNING", more=ABANDONED).write("e1", [])
    fail_with(ExecutorError("the cluster is gone"), monkeypatch)
    called = call("stop", "e1")
    assert called.code == 0
    assert "experiment e1 is STOPPED" in called.out


def test_star_means_all_that_run_and_begin_so(
    stored: Storing, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("abc1", "abc2", "xyz"):
        stored(status="RUNNING", more=ABANDONED).write(name, [])
    fail_with(ExecutorError("the cluster is gone"), monkeypatch)
    called = call("stop", "abc*")
    assert (called.code, [word in called.out for word in ("abc1", "abc2", "xyz")]) == (0, [True, True, False])
    assert call("stop", "abc*").code == 2
    assert call("stop", "abc*", "--all").code == 2
