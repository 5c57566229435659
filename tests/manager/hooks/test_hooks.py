"""Callbacks and stoppers in whole experiments on imagined trials, and when a manager is killed."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.simulated import SimulatedRun
from pitchpipe.manager.hooks.hooks import Callback, Hooks
from pitchpipe.manager.hooks.stoppers import (
    CriteriaStopper,
    ExperimentPlateauStopper,
    MaximumIterationStopper,
    Stopper,
    TimeoutStopper,
    TrialPlateauStopper,
    as_stopper,
)
from pitchpipe.manager.manager import Manager
from pitchpipe.runner import events as happened
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.trial import TrialStatus

from ...runner.driver import Driver
from ..experiments import bowl, comes_back_alike, resumed, run, run_with_crash, simulated, trials_of, viewed

Calls = list[tuple[str, str, Any]]


class Notes(Callback):
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: Calls = []
        self.rows: list[Mapping[str, Any]] = []
        self.threads: set[threading.Thread] = set()

    def note(self, what: str, row: Mapping[str, Any], more: Any = None) -> None:
        self.threads.add(threading.current_thread())
        self.calls.append((what, row.get("trial_id", row.get("id")), more))
        self.rows.append(row)

    def setup(self, experiment: Mapping[str, Any]) -> None:
        self.note("setup", experiment, experiment["status"])

    def on_trial_start(self, trial: Mapping[str, Any]) -> None:
        self.note("start", trial, trial["attempt"])

    def on_trial_result(self, trial: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self.note("result", trial, (result["training_iteration"], result["default"], result["done"]))

    def on_trial_complete(self, trial: Mapping[str, Any]) -> None:
        self.note("complete", trial, trial["status"])

    def on_trial_error(self, trial: Mapping[str, Any]) -> None:
        self.note("error", trial, trial["reason"])

    def on_experiment_end(self, experiment: Mapping[str, Any]) -> None:
        self.note("end", experiment, (experiment["status"], experiment["counts"]))


def listened(directory: Path, *callbacks: Callback, stopper: Stopper | None = None, **fields: Any) -> Manager:
    manager = simulated(directory, fields.pop("simulate", bowl), **fields)
    manager.hooks = Hooks(callbacks=callbacks, stopper=stopper)
    return manager


def two_steps(parameters: Mapping[str, Any]) -> SimulatedRun:
    return SimulatedRun(0.5, [0.9, 0.7], error="ValueError: no" if parameters["y"] == "b" else None)


def test_callback_follows_a_trial_from_start_to_end(tmp_path: Path) -> None:
    notes = Notes()
    space = {"y": {"_type": "choice", "_value": ["a", "b"]}}
    grid: Any = {"search_space": space, "tuner": {"name": "GridSearch"}, "max_trial_number": 2}
    run(listened(tmp_path, notes, simulate=two_steps, **grid))
    good, bad = trials_of(tmp_path)
    results = [("result", good.trial_id, more) for more in ((1, 0.9, False), (2, 0.7, False), (2, 0.5, True))]
    assert notes.calls == [
        ("setup", "exp", "INITIALIZED"),
        ("start", good.trial_id, 1),
        *results,
        ("complete", good.trial_id, "SUCCEEDED"),
        ("start", bad.trial_id, 1),
        ("result", bad.trial_id, (1, 0.9, False)),
        ("result", bad.trial_id, (2, 0.7, False)),
        ("error", bad.trial_id, "ValueError: no"),
        ("end", "exp", ("DONE", {"SUCCEEDED": 1, "FAILED": 1})),
    ]
    assert notes.threads == {threading.current_thread()}


def test_rows_are_plain_and_the_callbacks_own(tmp_path: Path) -> None:
    class Vandal(Callback):
        def on_trial_result(self, trial: Any, result: Any) -> None:
            trial.clear()
            result.clear()

    notes = Notes()
    run(listened(tmp_path, Vandal(), notes, max_trial_number=2))
    assert json.loads(json.dumps(notes.rows)) == notes.rows
    last = next(row for row in reversed(notes.rows) if "trial_id" in row)
    assert (last["status"], last["value"]) == ("SUCCEEDED", last["final"])
    assert set(last["parameters"]) == {"x", "y"}
    assert notes.rows[-1]["best"][0]["trial_id"] in {row.get("trial_id") for row in notes.rows}


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_callback_that_raises_is_dropped_and_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    class Broken(Callback):
        def on_trial_result(self, trial: Any, result: Any) -> None:
            raise kind("no space in my notebook")

    notes = Notes()
    manager = listened(tmp_path, Broken(), notes, max_trial_number=3)
    with caplog.at_level(logging.ERROR):
        assert run(manager) is ExperimentStatus.DONE
    assert [record.message for record in caplog.records] == [
        "callback Broken failed in on_trial_result and is not called again"
    ]
    assert "no space in my notebook" in caplog.text
    assert [what for what, _, _ in notes.calls].count("complete") == 3


def test_calls_are_committed_and_not_repeated_after_a_crash(tmp_path: Path) -> None:
    notes = Notes()
    assert run_with_crash(listened(tmp_path, notes, max_trial_number=3), 20, after=False)
    finished = [trial for what, trial, _ in notes.calls if what == "complete"]
    committed = {trial.trial_id for trial in trials_of(tmp_path) if trial.status.is_final}
    assert set(finished) == committed != set()
    again = resumed(tmp_path)
    more = Notes()
    again.hooks = Hooks(callbacks=[more])
    run(again)
    assert [what for what, _, _ in more.calls].count("setup") == 1
    both = [(what, trial) for what, trial, _ in notes.calls + more.calls if what in ("start", "complete")]
    assert len(both) == len(set(both)) == 6


class Everything(Callback):
    """Writes down which method was called with which attempt of a trial."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return super().__getattribute__(name)
        return lambda trial, *more: self.calls.append(
            (name, trial.get("attempt"), *(row.get("path") for row in more))
        )


def test_callback_gets_checkpoints_pauses_and_attempts() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    callback = Everything()
    listeners = Hooks(callbacks=[callback])
    listeners.begin(driver.runner, list, lambda: driver.now, dict)

    def tell(*events: happened.Event) -> list[tuple[Any, ...]]:
        for event in events:
            driver.handle(event)
        listeners.after(driver.runner.take_changes(), events)
        calls, callback.calls = callback.calls, []
        return calls

    driver.ready()
    driver.propose(x=1)
    (trial,) = driver.runner.get_trials()
    one = driver.now, trial.trial_id, 1
    assert tell() == []
    assert tell(happened.AttemptStarted(*one)) == [("on_trial_start", 1)]
    saved = happened.CheckpointSaved(*one, name="1-1", sequence=1)
    reported = happened.Reported(*one, kind="intermediate", sequence=0, value="0.5")
    path = "trials/0/checkpoints/1-1"
    assert tell(reported, saved) == [("on_trial_result", 1, None), ("on_checkpoint", 1, path)]
    assert tell(happened.AttemptEnded(*one, lost=True)) == [("on_trial_recover", 2)]
    two = driver.now, trial.trial_id, 2
    assert tell(happened.AttemptStarted(*two)) == [("on_trial_start", 2)]
    paused = happened.PauseVerdict(driver.now, trial.trial_id, "its rung is full")
    assert tell(paused, happened.AttemptEnded(*two, paused=True)) == [("on_trial_pause", 2)]
    assert tell(happened.ResumeRequested(driver.now, trial.trial_id)) == []
    three = driver.now, trial.trial_id, 3
    final = happened.Reported(*three, kind="final", sequence=0, value="0.1")
    ended = happened.AttemptEnded(*three, exit_code=0)
    assert tell(happened.AttemptStarted(*three), final, ended) == [
        ("on_trial_start", 3),
        ("on_trial_result", 3, None),
        ("on_trial_complete", 3),
    ]


def test_start_that_an_earlier_manager_ordered_is_reported_by_the_next() -> None:
    driver = Driver(trial_concurrency=1)
    driver.ready()
    driver.propose(x=1)
    (trial,) = driver.runner.get_trials()
    assert trial.is_assigned
    driver.runner.take_changes()
    callback = Everything()
    listeners = Hooks(callbacks=[callback])
    listeners.begin(driver.runner, list, lambda: driver.now, dict)
    driver.start(trial)
    listeners.after(driver.runner.take_changes(), [])
    assert callback.calls == [("on_trial_start", 1)]


def test_exit_in_a_callback_is_an_error_like_others(tmp_path: Path) -> None:
    class Leaving(Callback):
        def on_trial_start(self, trial: Any) -> None:
            raise SystemExit(3)

    assert run(listened(tmp_path, Leaving(), max_trial_number=1)) is ExperimentStatus.DONE


# --------------------------------------------------------------------------- stoppers


def test_stopped_trial_succeeds_with_its_last_result(tmp_path: Path) -> None:
    run(listened(tmp_path, stopper=MaximumIterationStopper(4), max_trial_number=3))
    with viewed(tmp_path) as store:
        periodical = Counter(row[0] for row in store.metrics() if row[1] == "PERIODICAL")
    assert periodical == {0: 4, 1: 4, 2: 4}
    for trial in trials_of(tmp_path):
        assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, "4 results are enough")
        assert trial.values[0] > 2.5  # 10 / 4 above its goal


@pytest.mark.parametrize("reported", [False, 0, "no"])
def test_stopper_ends_a_trial_that_reports_keys_of_ours(tmp_path: Path, reported: Any) -> None:
    ours = {"done": reported, "training_iteration": 0, "trial_id": "mine", "time_total_s": 0}

    endless = SimulatedRun(0.5, [{"default": 0.5, **ours}] * 20)
    notes = Notes()
    stopper = MaximumIterationStopper(4)
    run(listened(tmp_path, notes, stopper=stopper, simulate=lambda _: endless, max_trial_number=1))
    (trial,) = trials_of(tmp_path)
    assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, "4 results are enough")
    calls = [more[0] for what, _, more in notes.calls if what == "result"]
    assert calls[:4] == [1, 2, 3, 4]


def test_trial_that_reports_a_true_done_can_be_ended_by_it(tmp_path: Path) -> None:
    finished = SimulatedRun(0.5, [{"default": 0.5, "done": number == 2} for number in range(20)])
    stopper = CriteriaStopper({"done": True})
    run(listened(tmp_path, stopper=stopper, simulate=lambda _: finished, max_trial_number=1))
    (trial,) = trials_of(tmp_path)
    assert (trial.status, trial.next_sequence) == (TrialStatus.SUCCEEDED, 3)


def test_tuner_is_notified_of_stopped_trials(tmp_path: Path) -> None:
    stopper = MaximumIterationStopper(2)
    manager = listened(tmp_path, stopper=stopper, max_trial_number=12, tuner={"name": "TPE"})
    run(manager)
    assert manager.runner.best.front
    assert {trial.status for trial in trials_of(tmp_path)} == {TrialStatus.SUCCEEDED}


def test_stopper_ends_the_experiment(tmp_path: Path) -> None:
    flat = SimulatedRun(0.5, [0.5])
    stopper = ExperimentPlateauStopper(top=3)
    manager = listened(tmp_path, simulate=lambda _: flat, stopper=stopper, max_trial_number=100)
    assert run(manager) is ExperimentStatus.DONE
    assert manager.runner.reason == stopper.reason()
    assert len(trials_of(tmp_path)) == 3


def test_stopper_gets_a_repeated_result_once() -> None:
    calls: list[tuple[int, float]] = []

    class Listening(Stopper):
        def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
            calls.append((result["training_iteration"], result["default"]))
            return False

    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    listeners = Hooks(stopper=Listening())
    listeners.begin(driver.runner, list, lambda: driver.now, dict)
    driver.report(trial, 0.5)
    driver.handle(happened.CheckpointSaved(driver.now, trial.trial_id, 1, name="1-1", sequence=1))
    driver.report(trial, 0.4)
    driver.end(trial, exit_code=None, lost=True)
    driver.start(trial)
    driver.report(trial, 0.4)
    driver.report(trial, 0.3)
    assert listeners.judge(driver.runner.new_results, driver.now) == []
    assert calls == [(1, 0.5), (2, 0.4), (3, 0.3)]


def test_timeout_needs_no_results(tmp_path: Path) -> None:
    long = SimulatedRun(0.5, step=5000.0)
    manager = listened(tmp_path, simulate=lambda _: long, stopper=TimeoutStopper(90.0))
    assert run(manager) is ExperimentStatus.DONE
    assert manager.now() == 1090.0
    assert [trial.status for trial in trials_of(tmp_path)] == [TrialStatus.SYS_CANCELED]


@pytest.mark.parametrize("error", [KeyError("accuracy"), SystemExit(3), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("method", ["__call__", "stop_all", "reason", "time_left"])
def test_stopper_that_raises_ends_nothing_and_is_named_once(
    method: str, error: BaseException, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> bool:
        raise error

    kind = type("Broken", (Stopper,), {"__call__": lambda *_: method == "reason", method: broken})
    manager = listened(tmp_path, stopper=kind(), max_trial_number=3)
    assert run(manager) is ExperimentStatus.DONE
    assert [trial.status for trial in trials_of(tmp_path)] == [TrialStatus.SUCCEEDED] * 3
    (warning,) = manager.warnings()
    assert [record.message for record in caplog.records if "Broken" in record.message] == [warning]


def test_stopper_that_raises_for_a_result_judges_the_next_and_hides_no_other(tmp_path: Path) -> None:
    def third(_: str, result: Mapping[str, Any]) -> bool:
        return result["accuracy"] > 0.5 or result["training_iteration"] > 2  # type: ignore[no-any-return]

    odd = [{"default": 1.0}, {"default": 1.0, "accuracy": None}, {"default": 1.0, "accuracy": 0.1}]
    both: Any = as_stopper([third, {"training_iteration": 3}])
    for name, stopper, steps in (("one", both.stoppers[0], odd), ("two", both, odd[:2] * 2)):
        endless = SimulatedRun(0.5, steps * 5)
        run(
            listened(
                tmp_path / name, stopper=stopper, simulate=lambda _, run=endless: run, max_trial_number=1
            )
        )  # type: ignore[misc]
        (trial,) = trials_of(tmp_path / name)
        assert (trial.status, trial.next_sequence) == (TrialStatus.SUCCEEDED, 3)


def test_stopper_that_cannot_begin_ends_the_experiment_and_is_named(tmp_path: Path) -> None:
    class NoBeginning(Stopper):
        def begin(self, elapsed: Any) -> None:
            raise ValueError("no clock")

    manager = listened(tmp_path, stopper=NoBeginning(), max_trial_number=2)
    assert run(manager) is ExperimentStatus.ERROR
    assert manager.runner.reason == "the stopper NoBeginning raised ValueError: no clock"
    assert "raise ValueError" in manager.runner.error


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "between commit and effects"])
def test_killed_manager_comes_back_with_what_its_stopper_knew(after: bool, tmp_path: Path) -> None:
    def hooks() -> Hooks:
        return Hooks(stopper=TrialPlateauStopper(std=0.3, num_results=3, grace_period=3))

    comes_back_alike(tmp_path, [(at, after) for at in (5, 9, 17, 26)], hooks=hooks, max_trial_number=4)
    with viewed(tmp_path / "whole") as store:  # seven results and the final one
        assert set(Counter(row[0] for row in store.metrics()).values()) == {8}
