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
from pitchpipe.executors.simulated import SimulatedRun
from pitchpipe.manager.control.operations import LiveChanges
from pitchpipe.manager.manager import Manager
from pitchpipe.manager.run_settings import limits_of, objectives_of, request_of
from pitchpipe.manager.turn import EventLog
from pitchpipe.runner.effects import Effect
from pitchpipe.runner.events import Tick, event_of
from pitchpipe.runner.ledger import Ledger, Totals
from pitchpipe.runner.trial_runner import TrialRunner

from .experiments import SPACE, config, created, let_go, resumed, run, run_with_crash

Rows = list[dict[str, Any]]


def steps(parameters: Mapping[str, Any]) -> SimulatedRun:
    value = abs(parameters["x"])
    error = "it failed" if int(value) == 1 else None
    return SimulatedRun(value, [value + 3, value + 2, value + 1], step=1.0 + value, error=error)


def recorded(directory: Path, **fields: Any) -> Manager:
    data = {
        "search_space": {"x": SPACE["x"]},
        "assessor": {"name": "Medianstop"},
        "max_trial_number": 12,
        "trial_concurrency": 3,
        "log_level": "debug",
        **fields,
    }
    return created(directory, config(**data), steps)


def ran(manager: Manager) -> TrialRunner:
    """Run an experiment to its end and return its state."""
    run(manager)
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
        for row in rows:
            effects += runner.handle(event_of(row))
    return runner, effects


def test_replay_gives_the_same_trials_and_effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = recorded(tmp_path)
    effects = noted_effects(manager, monkeypatch)
    first = ran(manager)
    monkeypatch.undo()
    runner, again = replayed(manager.config, parts(tmp_path))
    assert runner.trials == first.trials
    assert {trial.status.value for trial in runner.get_trials()} >= {"SUCCEEDED", "FAILED"}
    assert (again, [each.cause for each in again]) == (effects, [each.cause for each in effects])
    assert runner.status is first.status


def test_replay_of_a_resumed_experiment_leaves_out_what_was_never_committed(tmp_path: Path) -> None:
    manager = recorded(tmp_path)
    assert run_with_crash(manager, 20, after=False)
    again = ran(resumed(tmp_path, steps))
    first, second = parts(tmp_path)
    assert first[-1]["end"] == second[0]["snapshot"]["recorded"]
    runner, _ = replayed(manager.config, [first, second])
    assert {t.trial_id: (t.status, t.values, t.reason, t.attempt) for t in runner.get_trials()} == {
        t.trial_id: (t.status, t.values, t.reason, t.attempt) for t in again.get_trials()
    }


def test_without_debug_nothing_is_recorded(tmp_path: Path) -> None:
    run(recorded(tmp_path, log_level="info"))
    assert not (tmp_path / "exp" / "logs" / "events.jsonl").exists()


def test_recording_that_cannot_be_written_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "events.jsonl").symlink_to("/dev/full")
    log = EventLog(tmp_path)
    log.add(Tick(1.0))
    log.add(Tick(2.0))
    assert caplog.messages == ["events are no longer recorded: [Errno 28] No space left on device"]


def test_events_name_what_caused_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manager = recorded(tmp_path, max_experiment_duration="40s", max_trial_number=None)
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
        let_go(manager)
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
