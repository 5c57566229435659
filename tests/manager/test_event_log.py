"""The recording of an experiment: a replay gives the same trials and effects, and every event has a cause."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager.control.operations import LiveChanges
from pitchpipe.manager.event_log import EventLog
from pitchpipe.manager.experiments import create_experiment, resume_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.manager.settings import limits_of, objectives_of, request_of
from pitchpipe.runner.effects import Effect
from pitchpipe.runner.events import Tick
from pitchpipe.runner.ledger import Ledger, Totals
from pitchpipe.runner.recording import replay
from pitchpipe.runner.trial_runner import TrialRunner
from pitchpipe.store.folder import ExperimentFolder

SPACE = {"x": {"_type": "uniform", "_value": [-5, 5]}}
Rows = list[dict[str, Any]]


class Killed(Exception):
    """The manager is killed here."""


def steps(parameters: Mapping[str, Any]) -> SimulatedRun:
    value = abs(parameters["x"])
    error = "it failed" if int(value) == 1 else None
    return SimulatedRun(value, [value + 3, value + 2, value + 1], step=1.0 + value, error=error)


def created(directory: Path, **fields: Any) -> Manager:
    data = {
        "search_space": SPACE,
        "tuner": {"name": "Random"},
        "assessor": {"name": "Medianstop"},
        "seed": 7,
        "max_trial_number": 12,
        "trial_concurrency": 3,
        "log_level": "debug",
        **fields,
    }
    config = ExperimentConfig.from_dict(data, needs_command=False)
    clock = VirtualClock(1000.0)
    executor = SimulatedTrialExecutor(steps, clock)
    return create_experiment(config, directory=directory, experiment_id="exp", executor=executor, clock=clock)


def resumed(directory: Path, start: float) -> Manager:
    clock = VirtualClock(start)
    folder = ExperimentFolder.find(directory, "exp")
    return resume_experiment(folder, executor=SimulatedTrialExecutor(steps, clock), clock=clock)


def run(manager: Manager) -> TrialRunner:
    try:
        asyncio.run(manager.run())
    finally:
        manager.store.close()
        manager.folder.disown()
    assert manager.runner is not None
    return manager.runner


def noted_effects(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> list[Effect]:
    """Return a list that gets all effects of the manager's runner."""
    effects: list[Effect] = []
    handle = TrialRunner.handle

    def noting(runner: TrialRunner, event: Any) -> list[Effect]:
        effects.extend(made := handle(runner, event))
        return made

    monkeypatch.setattr(TrialRunner, "handle", noting)
    return effects


def parts(directory: Path) -> list[Rows]:
    """Return the committed lines of a recording, those of each manager on their own."""
    data = (directory / "exp" / "logs" / "events.jsonl").read_bytes()
    lines, found, at = data.splitlines(keepends=True), list[tuple[int, Rows]](), 0
    for line in lines:
        row = json.loads(line)
        if row["kind"] == "Begin":
            committed = row["snapshot"].get("recorded", 0)
            for _, rows in found:
                rows[:] = [each for each in rows if each["end"] <= committed]
            found.append((at, []))
        at += len(line)
        found[-1][1].append({**row, "end": at})
    return [rows for _, rows in found]


def replayed(config: ExperimentConfig, recording: list[Rows]) -> tuple[TrialRunner, list[Effect]]:
    """Replay a recording; return the last runner and the effects of all."""
    runner, effects = None, list[Effect]()
    for begin, *rows in recording:
        trials = [] if runner is None else runner.get_trials()
        totals = Totals(**begin["totals"])
        runner = TrialRunner(
            "exp", limits_of(config), Ledger(totals), request_of(config), objectives_of(config)
        )
        runner.restore(trials, begin["snapshot"], begin["run_time"])
        effects += replay(rows, runner)
    assert runner is not None
    return runner, effects


def test_replay_gives_the_same_trials_and_effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = created(tmp_path)
    effects = noted_effects(manager, monkeypatch)
    ran = run(manager)
    monkeypatch.undo()
    runner, again = replayed(manager.config, parts(tmp_path))
    assert runner.trials == ran.trials
    assert {trial.status.value for trial in runner.get_trials()} >= {"SUCCEEDED", "FAILED"}
    assert (again, [each.cause for each in again]) == (effects, [each.cause for each in effects])
    assert runner.status is ran.status


def test_replay_of_a_resumed_experiment_leaves_out_what_was_never_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = created(tmp_path)
    commit, turns = manager.store.commit, 0

    def killed_later(tick: Any) -> None:
        nonlocal turns
        turns += 1
        if turns == 20:
            raise Killed
        commit(tick)

    monkeypatch.setattr(manager.store, "commit", killed_later)
    with pytest.raises(Killed):
        run(manager)
    ran = run(resumed(tmp_path, 1020.0))
    first, second = parts(tmp_path)
    assert first[-1]["end"] == second[0]["snapshot"]["recorded"]
    runner, _ = replayed(manager.config, [first, second])
    assert {t.trial_id: (t.status, t.values, t.reason, t.attempt) for t in runner.get_trials()} == {
        t.trial_id: (t.status, t.values, t.reason, t.attempt) for t in ran.get_trials()
    }


def test_without_debug_nothing_is_recorded(tmp_path: Path) -> None:
    run(created(tmp_path, log_level="info"))
    assert not (tmp_path / "exp" / "logs" / "events.jsonl").exists()


def test_recording_that_cannot_be_written_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.jsonl").symlink_to("/dev/full")
    log = EventLog(tmp_path)
    log.add(Tick(1.0))
    log.add(Tick(2.0))
    assert caplog.messages == ["events are not recorded any more: [Errno 28] No space left on device"]


def test_events_name_what_caused_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manager = created(tmp_path, max_experiment_duration="40s", max_trial_number=None)
    operations = LiveChanges(manager).operations()

    async def steered() -> None:
        begun = asyncio.Event()
        manager.watch(lambda: begun.set() if manager.runner is not None and manager.runner.trials else None)
        async with manager:
            await begun.wait()
            operations["kill"]({"trial": 0})
            operations["add"]({"parameters": {"x": 0.5}})
            await manager.wait()

    caplog.set_level(logging.DEBUG, "pitchpipe")
    try:
        asyncio.run(steered())
    finally:
        manager.store.close()
        manager.folder.disown()
    [(begin, *rows)] = parts(tmp_path)
    assert begin["totals"]
    causes = {row["kind"]: row["event"]["cause"] for row in reversed(rows)}
    assert causes["DispatcherReady"] == "dispatcher"
    assert causes["ParametersArrived"] == "dispatcher reply 1"
    assert causes["TrialKillRequested"] == "user: kill"
    assert causes["TrialAddRequested"] == "user: add"
    assert causes["Tick"] == "timer: deadline"
    assert "trial 0 is USER_CANCELED: killed by the user" in caplog.messages
    assert "StartTrial after ParametersArrived (cause: dispatcher reply 1)" in caplog.messages
