"""The simulation: what its clock and its events do; the contract of all executors is in test_trial_executor.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AttemptEnded, CheckpointSaved, Event, Reported, Tick
from pitchpipe.trial_agent import RunSpec

from .bench import setup_of


class Simulation:
    """An open executor at second 1000, and the events that it delivered."""

    def __init__(self, runs: Mapping[str, SimulatedRun]) -> None:
        self.clock = VirtualClock(1000.0)
        self.events: list[Event] = []
        self.executor = SimulatedTrialExecutor(lambda parameters: runs[parameters["run"]], self.clock)
        run = RunSpec(kind="command", experiment="exp", folder="/nowhere", command="true")
        setup = setup_of(Path("/nowhere"), run, concurrency=2, clock=self.clock)
        asyncio.run(self.executor.open(setup, self._deliver))

    def _deliver(self, events: Sequence[Event]) -> None:
        self.events += events

    def start(self, number: int, run: str, **fields: Any) -> None:
        record = json.dumps({"parameters": {"run": run}})
        order: dict[str, Any] = {"attempt": 1, "slot": number, "agent": f"{number}-0", **fields}
        self.executor.start_trial(
            AttemptOrder(trial_id=f"T{number}", sequence_id=number, record=record, **order)
        )

    def advance(self, times: int = 100) -> list[tuple[float, str]]:
        """Let the manager be idle so often; return the times and kinds of all events so far."""
        for _ in range(times):
            self.executor.on_idle(None)
        return [(event.time, type(event).__name__) for event in self.events]


def test_events_come_at_their_times_and_simultaneous_ones_by_trial() -> None:
    simulation = Simulation({"slow": SimulatedRun(1, [0], step=10.0), "fast": SimulatedRun(1, [0], step=5.0)})
    simulation.start(1, "slow")
    simulation.start(0, "slow")
    simulation.start(2, "fast")
    simulation.advance()
    ended = [(event.time, event.trial_id) for event in simulation.events if isinstance(event, AttemptEnded)]
    assert ended == [(1005.0, "T2"), (1010.0, "T0"), (1010.0, "T1")]
    assert simulation.clock() == 1010.0


def test_deadline_before_the_next_event_is_a_tick() -> None:
    simulation = Simulation({"week": SimulatedRun(1, step=604800.0)})
    simulation.start(0, "week")
    simulation.advance(1)
    simulation.executor.on_idle(1060.0)
    assert isinstance(simulation.events[-1], Tick)
    assert (simulation.events[-1].time, simulation.clock()) == (1060.0, 1060.0)


def test_first_attempt_is_lost_and_the_next_continues_from_its_checkpoint() -> None:
    simulation = Simulation({"run": SimulatedRun("end", range(6), checkpoint_every=2, losses=[3.0])})
    simulation.start(0, "run")
    simulation.advance()
    first, simulation.events = simulation.events, []
    assert [event.sequence for event in first if isinstance(event, CheckpointSaved)] == [2]
    assert isinstance(first[-1], AttemptEnded)
    assert (first[-1].time, first[-1].lost) == (1003.0, True)
    simulation.start(0, "run", attempt=2, first_sequence=2)
    simulation.advance()
    reports = [event for event in simulation.events if isinstance(event, Reported)]
    assert [event.value for event in reports] == ["2", "3", "4", "5", '"end"']
    assert simulation.clock() == 1007.0


def test_failing_trial_has_no_final_result() -> None:
    simulation = Simulation({"run": SimulatedRun(0.5, error="ValueError: bad")})
    simulation.start(0, "run")
    simulation.advance()
    ended = simulation.events[-1]
    assert isinstance(ended, AttemptEnded)
    assert (ended.exit_code, ended.error) == (1, "ValueError: bad")
    assert not any(isinstance(event, Reported) for event in simulation.events)


def test_paused_attempt_saves_what_it_has_reported_and_says_nothing_more() -> None:
    simulation = Simulation({"run": SimulatedRun(0.5, range(10))})
    simulation.start(0, "run")
    simulation.advance(4)  # its start and three results
    simulation.executor.pause_trial("T0", 1)
    found = simulation.advance()
    assert [kind for _, kind in found[4:]] == ["CheckpointSaved", "AttemptEnded"]
    saved, ended = simulation.events[-2:]
    assert isinstance(saved, CheckpointSaved)
    assert isinstance(ended, AttemptEnded)
    assert (saved.sequence, ended.paused, ended.time) == (3, True, 1003.0)


def test_simulated_files_are_empty() -> None:
    simulation = Simulation({"run": SimulatedRun()})
    order = AttemptOrder(trial_id="T0", attempt=1, sequence_id=0, record="{}", slot=0, agent="0-0")
    assert asyncio.run(simulation.executor.read_file(order, "stdout", 0, 10)) == b""


def test_clock_never_runs_backwards() -> None:
    clock = VirtualClock(100.0)
    clock.advance_to(60.0)
    assert clock() == 100.0
