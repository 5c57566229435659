"""The manager with a real dispatcher, on imagined trials: whole experiments, the tuner's troubles, coming back."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager.control.extension import Extension, ExtensionError, extend_experiment
from pitchpipe.manager.dispatcher_link.dispatcher import Dispatcher
from pitchpipe.manager.dispatcher_link.dispatcher_process import DispatcherProcess
from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.manager.run_settings import run_of
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.ledger import Totals
from pitchpipe.runner.trial import TrialStatus
from pitchpipe.store import ExperimentFolder, FolderError, NotWritableError, Store, StoreTick
from pitchpipe.store.manager_process import clock_mark

from .experiments import (
    bowl,
    comes_back_alike,
    config,
    created,
    let_go,
    plugin,
    resumed,
    run,
    run_with_crash,
    simulated,
    story,
    trials_of,
    viewed,
)

SEARCH = {
    "trial_concurrency": 3,
    "max_trial_number": 8,
    "tuner": {"name": "TPE"},
    "assessor": {"name": "Medianstop"},
}

# --------------------------------------------------------------------------- whole experiments


def test_cancelled_run_ends_in_order_and_continues_later(tmp_path: Path) -> None:
    async def cancelled(manager: Manager) -> None:
        running = asyncio.ensure_future(manager.run())
        reached = asyncio.Event()
        manager.watch(lambda: reached.set() if len(manager.runner.get_trials()) > 3 else None)  # type: ignore[union-attr]
        await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    manager = simulated(tmp_path, trial_concurrency=2)
    ended: list[Any] = []
    manager.hooks.end = ended.append
    try:
        asyncio.run(cancelled(manager))
    finally:
        let_go(manager)
    assert len(ended) == 1
    assert run(resumed(tmp_path)) is ExperimentStatus.DONE
    assert [trial.status for trial in trials_of(tmp_path)] == [TrialStatus.SUCCEEDED] * 10


def test_executor_that_cannot_be_closed_is_logged_and_the_end_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def stuck() -> None:
        raise OSError("stuck")

    manager = simulated(tmp_path)
    monkeypatch.setattr(manager.executor, "close", stuck)
    assert run(manager) is ExperimentStatus.DONE
    assert "not everything could be ended: OSError('stuck')" in caplog.messages


def test_same_seed_gives_the_same_experiment(tmp_path: Path) -> None:
    stories = []
    for name in ("one", "two"):
        run(simulated(tmp_path / name, **{**SEARCH, "trial_concurrency": 4, "max_trial_number": 30}))
        stories.append(story(tmp_path / name))
    assert stories[0] == stories[1]
    assert TrialStatus.EARLY_STOPPED in {trial.status for trial in trials_of(tmp_path / "two")}


def test_drawn_seed_is_kept_in_the_store(tmp_path: Path) -> None:
    manager = simulated(tmp_path, seed=None)
    assert isinstance(manager.config.seed, int)
    let_go(manager)


def test_early_stopped_trial_says_why(tmp_path: Path) -> None:
    run(simulated(tmp_path, trial_concurrency=2, max_trial_number=20, assessor={"name": "Medianstop"}))
    stopped = [trial for trial in trials_of(tmp_path) if trial.status is TrialStatus.EARLY_STOPPED]
    assert stopped
    assert all("median" in trial.reason for trial in stopped)
    assert all(trial.final is None for trial in stopped)


def test_exhausted_tuner_ends_the_experiment(tmp_path: Path) -> None:
    space = {"x": {"_type": "choice", "_value": [1, 2, 3]}, "y": {"_type": "choice", "_value": ["a"]}}
    manager = simulated(
        tmp_path, search_space=space, tuner={"name": "GridSearch"}, max_trial_number=None, trial_concurrency=2
    )
    assert run(manager) is ExperimentStatus.DONE
    assert sorted(json.loads(trial.record)["parameters"]["x"] for trial in trials_of(tmp_path)) == [1, 2, 3]


def test_max_trial_duration_fails_only_the_slow(tmp_path: Path) -> None:
    run(simulated(tmp_path, max_trial_duration=35, max_trial_number=20))
    trials = trials_of(tmp_path)
    slow = [trial for trial in trials if 10 * (1 + abs(json.loads(trial.record)["parameters"]["x"])) > 35]
    assert 0 < len(slow) < 20
    assert [trial for trial in trials if trial.status is TrialStatus.FAILED] == slow
    assert all(math.isclose((trial.end_time or 0) - (trial.start_time or 0), 35) for trial in slow)


def test_max_experiment_duration_stops_everything(tmp_path: Path) -> None:
    manager = simulated(tmp_path, max_experiment_duration=100, max_trial_number=1000, trial_concurrency=5)
    assert run(manager) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert 5 < len(trials) < 100
    assert {trial.status for trial in trials} == {TrialStatus.SUCCEEDED, TrialStatus.SYS_CANCELED}
    assert max(trial.end_time or 0 for trial in trials) <= 1101


MACHINE = Totals(amounts={"CPU": 4.0, "memory": 8.0 * 2**30, "licence": 3.0}, devices=(0, 1))


@pytest.mark.parametrize(
    ("fields", "at_once"),
    [
        ({"trial_concurrency": 6}, 6),
        ({"trial_concurrency": 6, "trial_cpu_number": 1}, 4),
        ({"trial_concurrency": 6, "trial_memory_size": "3gb"}, 2),
        ({"trial_concurrency": 6, "trial_resources": {"licence": 1}}, 3),
        ({"trial_concurrency": 6, "trial_gpu_number": 1}, 2),
        ({"trial_concurrency": 6, "trial_gpu_number": 0.5}, 4),
        ({"trial_concurrency": 6, "trial_gpu_number": 2}, 1),
        ({"trial_concurrency": 1, "trial_gpu_number": 0.25}, 1),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_resources_bound_how_many_trials_run_at_once(
    fields: dict[str, Any], at_once: int, tmp_path: Path
) -> None:
    assert run(simulated(tmp_path, totals=MACHINE, max_trial_number=12, **fields)) is ExperimentStatus.DONE
    times = [(trial.start_time or 0.0, trial.end_time or 0.0) for trial in trials_of(tmp_path)]
    running = [sum(start <= moment < end for start, end in times) for moment, _ in times]
    assert max(running) == at_once


def test_thousands_of_trials_at_once(tmp_path: Path) -> None:
    manager = simulated(
        tmp_path,
        lambda parameters: SimulatedRun(parameters["x"]),
        max_trial_number=3_000,
        trial_concurrency=3_000,
    )
    assert run(manager) is ExperimentStatus.DONE
    assert len(trials_of(tmp_path)) == 3_000


# --------------------------------------------------------------------------- the tuner's troubles

TUNER = '''
import os, signal
from pathlib import Path
from quiet import Quiet

class Troubled(Quiet):
    """Proposes 0, 1, 2 ...; has the trouble it is configured to have."""
    def __init__(self, trouble, marker):
        self.trouble, self.marker = trouble, Path(marker)
        self.results = []
    def generate_parameters(self, parameter_id, **kwargs):
        if self.trouble == "always" and parameter_id == 3:
            raise ValueError("no more ideas")
        if self.trouble == "rubbish" and parameter_id == 3:
            return object()
        if self.trouble == "exit" and parameter_id == 3:
            os._exit(3)
        if self.trouble == "killed twice" and parameter_id == 3:
            with self.marker.open("a") as deaths:
                deaths.write("x")
            if self.marker.stat().st_size < 3:
                os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "random":
            return {"x": int.from_bytes(os.urandom(4), "big"), "y": "a"}
        return {"x": parameter_id, "y": "a"}
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        self.results.append((parameter_id, value))
        if self.trouble == "once" and parameter_id == 2 and not self.marker.exists():
            self.marker.touch()
            raise RuntimeError("a passing trouble")
        if self.trouble == "random" and len(self.results) == 3 and not self.marker.exists():
            self.marker.touch()
            raise RuntimeError("a passing trouble")
    def import_data(self, data):
        self.marker.with_suffix(".imported").write_text(str(len(data)))
'''


def troubled_tuner(tmp_path: Path, trouble: str) -> dict[str, Any]:
    return plugin(tmp_path, "troubled.Troubled", TUNER, trouble=trouble, marker=str(tmp_path / "marker"))


def troubled(tmp_path: Path, trouble: str) -> Manager:
    tuner = troubled_tuner(tmp_path, trouble)
    return simulated(
        tmp_path, lambda p: SimulatedRun(1.0), tuner=tuner, max_trial_number=6, trial_concurrency=1
    )


@pytest.mark.parametrize(
    ("trouble", "messages"),
    [
        ("always", ["ValueError", "no more ideas", "troubled.py:13"]),
        ("rubbish", ["generate_parameters", "object"]),
        pytest.param(
            "exit",
            ["ended with exit code 3, 3 times in a row", "resume"],
            marks=pytest.mark.dispatcher_process,
        ),
    ],
)
def test_tuner_that_fails_again_and_again_ends_the_experiment_and_is_named(
    trouble: str, messages: list[str], tmp_path: Path
) -> None:
    manager = troubled(tmp_path, trouble)
    assert run(manager) is ExperimentStatus.ERROR
    for words in messages:
        assert words in manager.runner.reason
    assert [trial.status for trial in trials_of(tmp_path)] == [TrialStatus.SUCCEEDED] * 3


@pytest.mark.parametrize(
    "trouble", ["once", pytest.param("killed twice", marks=pytest.mark.dispatcher_process)]
)
def test_tuner_that_fails_or_dies_at_one_command_is_restored_and_nothing_is_lost(
    trouble: str, tmp_path: Path
) -> None:
    assert run(troubled(tmp_path, trouble)) is ExperimentStatus.DONE
    assert (tmp_path / "marker").read_text() == ("xxx" if trouble == "killed twice" else "")
    assert [json.loads(t.record)["parameters"]["x"] for t in trials_of(tmp_path)] == [0, 1, 2, 3, 4, 5]
    assert not (tmp_path / "marker.imported").exists()  # it was replayed


def test_tuner_that_cannot_be_repeated_gets_the_results_instead(tmp_path: Path) -> None:
    manager = troubled(tmp_path, "random")
    assert run(manager) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert [trial.status for trial in trials] == [TrialStatus.SUCCEEDED] * 6
    assert (tmp_path / "marker.imported").read_text() == "3"
    assert [trial.parameter_id for trial in trials] == [0, 1, 2, 3, 4, 5]


def busy(parameters: dict[str, Any]) -> float:
    from pitchpipe import report_intermediate_result

    for step in range(20):
        report_intermediate_result(step)
    return parameters["x"]


busy.__module__ = "__main__"


@pytest.mark.usefixtures("forked_agents")
def test_dispatcher_is_restored_while_trials_continue(tmp_path: Path) -> None:
    """Check that what arrives between the failure and the new dispatcher is sent to it, once."""
    for attempt in range(2):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        made = config(
            tuner=troubled_tuner(directory, "once"),
            assessor={"name": "Medianstop"},
            trial_concurrency=4,
            max_trial_number=60,
            training_service={"platform": "local"},
        )
        manager = create_experiment(made, directory=directory, experiment_id="exp", function=busy)
        assert run(manager) is ExperimentStatus.DONE
        assert (directory / "marker").exists()
        trials = trials_of(directory)
        assert [trial.parameter_id for trial in trials] == list(range(60))


@pytest.mark.dispatcher_process
def test_dispatcher_that_dies_while_it_is_started_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, pids = DispatcherProcess.start, []

    async def dying_start(process: DispatcherProcess, *args: Any) -> None:
        await start(process, *args)
        pids.append(process.pid)
        if len(pids) == 1 and process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
            await process.terminate(60.0)  # returns when it has ended and its pipe is read to the end

    monkeypatch.setattr(DispatcherProcess, "start", dying_start)
    assert run(simulated(tmp_path)) is ExperimentStatus.DONE
    assert len(pids) == 2


# --------------------------------------------------------------------------- coming back after a kill


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "between commit and effects"])
def test_killed_manager_comes_back_as_if_nothing_had_happened(after: bool, tmp_path: Path) -> None:
    commits = 2, 20, 38, 43  # with verdicts of the assessor among them
    comes_back_alike(tmp_path, [(at, after) for at in commits], **SEARCH)


@pytest.mark.parametrize("hours", [-3, 3])
def test_clock_that_is_set_while_no_manager_runs_ends_no_trial(hours: int, tmp_path: Path) -> None:
    limited = {**SEARCH, "max_trial_duration": 100, "tuner": {"name": "Random"}}
    clock = VirtualClock(100_000.0)
    manager = simulated(tmp_path, clock=clock, **limited)
    assert run_with_crash(manager, 12, after=True)
    before = {trial.trial_id: trial.start_time for trial in trials_of(tmp_path) if trial.status == "RUNNING"}
    assert before
    jump = hours * 3600.0
    mark = clock_mark()
    left = {"pid": 1, "host": "here", "create_time": 0.0, "clock": {**mark, "offset": mark["offset"] - jump}}
    (tmp_path / "exp" / "manager.json").write_text(json.dumps(left))
    again = resumed(tmp_path, bowl, VirtualClock(clock() + jump))
    assert run(again) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert {trial.kind for trial in trials} == {None}
    for trial in trials:
        if trial.trial_id in before:
            assert trial.start_time == pytest.approx((before[trial.trial_id] or 0.0) + jump, abs=1.0)
        assert 0.0 <= (trial.end_time or 0.0) - trial.start_time < 100.0


def test_extended_experiment_continues_like_one_that_was_longer_from_the_start(tmp_path: Path) -> None:
    search = {**SEARCH, "trial_concurrency": 1}
    run(simulated(tmp_path / "long", **search))
    run(simulated(tmp_path / "short", **{**search, "max_trial_number": 3}))
    extend_experiment(ExperimentFolder.find(tmp_path / "short", "exp"), Extension(max_trial_number=8))
    assert run(resumed(tmp_path / "short")) is ExperimentStatus.DONE
    assert story(tmp_path / "short") == story(tmp_path / "long")


def test_resumed_experiment_uses_the_new_concurrency(tmp_path: Path) -> None:
    manager = simulated(tmp_path, **{**SEARCH, "trial_concurrency": 4})
    assert run_with_crash(manager, 12, after=True)
    extend_experiment(manager.folder, Extension(max_trial_number=12, trial_concurrency=1))
    before = {trial.trial_id for trial in trials_of(tmp_path) if trial.start_time is not None}
    assert run(resumed(tmp_path)) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert len(trials) == 12
    later = [(t.start_time or 0.0, t.end_time or 0.0) for t in trials if t.trial_id not in before]
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(later))


def test_experiment_that_is_over_its_time_is_extended_by_time(tmp_path: Path) -> None:
    fields = {"max_experiment_duration": 100, "max_trial_number": 30, "trial_concurrency": 2}
    assert run(simulated(tmp_path, **fields)) is ExperimentStatus.DONE
    folder = ExperimentFolder.find(tmp_path, "exp")
    with pytest.raises(ExtensionError, match="has run for 100 s already"):
        extend_experiment(folder, Extension(max_trial_number=40))
    assert TrialStatus.SYS_CANCELED in {trial.status for trial in trials_of(tmp_path)}
    extend_experiment(folder, Extension(max_experiment_duration=100_000.0))
    assert run(resumed(tmp_path)) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert [trial.status for trial in trials] == [TrialStatus.SUCCEEDED] * 30


def test_nothing_is_done_before_it_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, int]] = []
    written: list[int] = []
    start, write = SimulatedTrialExecutor.start_trial, Dispatcher.write

    def noted_start(executor: SimulatedTrialExecutor, order: AttemptOrder) -> None:
        started.append((order.trial_id, order.attempt))
        start(executor, order)

    def noted_write(dispatcher: Dispatcher, commands: Any) -> None:
        written.extend(command.n for command in commands)
        write(dispatcher, commands)

    monkeypatch.setattr(SimulatedTrialExecutor, "start_trial", noted_start)
    monkeypatch.setattr(Dispatcher, "write", noted_write)
    for at in (1, 2, 3, 5, 12):
        started.clear()
        written.clear()
        directory = tmp_path / str(at)
        assert run_with_crash(simulated(directory, **SEARCH), at, after=False)
        known = {(trial.trial_id, trial.attempt) for trial in trials_of(directory)}
        with viewed(directory) as store:
            numbers = {n for n, _, _ in store.commands()}
        assert set(started) <= known, f"killed at commit {at}"
        assert set(written) <= numbers, f"killed at commit {at}"


def test_second_manager_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    first = simulated(tmp_path)
    with pytest.raises(FolderError, match=rf"run by process {os.getpid()} on"):
        resumed(tmp_path)
    let_go(first)


def test_proposals_that_come_while_an_experiment_stops_are_made_again(tmp_path: Path) -> None:
    space = {"x": {"_type": "choice", "_value": list(range(12))}, "y": {"_type": "choice", "_value": ["a"]}}
    fields = {"search_space": space, "tuner": {"name": "GridSearch"}, "max_trial_number": None}
    manager = simulated(tmp_path, trial_concurrency=3, **fields)
    done = 0

    def stop_soon() -> None:
        nonlocal done
        if manager.runner is not None and manager.runner.counts[TrialStatus.SUCCEEDED] > done:
            done = 3
            manager.stop()

    manager.watch(stop_soon)
    assert run(manager) is ExperimentStatus.STOPPED
    assert run(resumed(tmp_path)) is ExperimentStatus.DONE
    trials = trials_of(tmp_path)
    assert sorted(json.loads(trial.record)["parameters"]["x"] for trial in trials) == list(range(12))


@pytest.mark.parametrize("durability", ["process", "power"])
def test_files_of_an_experiment_are_as_durable_as_its_commits_also_when_it_is_resumed(
    durability: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: forced.append(os.readlink(f"/proc/self/fd/{fd}")))
    settings = config(durability=durability)
    made = created(tmp_path, settings, function=bowl)
    is_durable = durability == "power"
    assert made.store.survives_power_cut is run_of(settings, made.folder).synced is is_durable
    let_go(made)
    names = [str(made.folder.function_file), str(made.folder.path), str(tmp_path), str(tmp_path.parent)]
    assert [name for name in forced if name in names] == (names if is_durable else [])
    extend_experiment(made.folder, Extension(max_trial_number=12))
    again = resumed(tmp_path)
    assert again.store.survives_power_cut is is_durable
    let_go(again)


# --------------------------------------------------------------------------- an end that cannot be written


def test_replies_that_cannot_be_written_after_the_end_do_not_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    manager = simulated(tmp_path)
    commit = Store.commit

    def refused(store: Store, tick: StoreTick) -> None:
        if store.experiment().status == "DONE":
            raise NotWritableError("the disk is full")
        commit(store, tick)

    monkeypatch.setattr(Store, "commit", refused)
    assert run(manager) is ExperimentStatus.DONE
    (said,) = [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert said.getMessage().startswith("all results are stored; only the tuner's last replies could not be")
    monkeypatch.undo()
    assert {trial.status for trial in trials_of(tmp_path)} == {TrialStatus.SUCCEEDED}
    extend_experiment(manager.folder, Extension(max_trial_number=14))
    assert run(resumed(tmp_path)) is ExperimentStatus.DONE
    run(simulated(tmp_path / "whole", max_trial_number=14))
    records = [[trial.record for trial in trials_of(one)] for one in (tmp_path, tmp_path / "whole")]
    assert records[0] == records[1]
