"""The watch over a peer's signs of life, on a clock in the test's hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pitchpipe.executors.tasks import Heartbeat


class Clock(asyncio.AbstractEventLoop):
    """As much of an event loop as a heartbeat needs: a time, and one timer."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[..., Any]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any, **_: Any) -> Any:
        timer = (self.now + delay, callback)
        self.timers.append(timer)
        return SimpleNamespace(cancel=lambda: self.timers.remove(timer) if timer in self.timers else None)

    def elapse(self, seconds: float) -> None:
        """Let time pass; what is due is called when it is due."""
        end = self.now + seconds
        while self.timers and min(self.timers)[0] <= end:
            timer = min(self.timers)
            self.timers.remove(timer)
            self.now = max(self.now, timer[0])
            timer[1]()
        self.now = end


class Patient:
    """A heartbeat with what it has said."""

    def __init__(self, clock: Clock, **options: Any) -> None:
        self.said: list[str] = []
        self.heart = Heartbeat(
            timeout=10.0,
            beat=lambda: self.said.append("beat"),
            on_silence=lambda: self.said.append("dead"),
            on_suspect=lambda suspect: self.said.append("suspect" if suspect else "well"),
            **options,
        )
        self.heart.start()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("pitchpipe.executors.tasks.asyncio.get_running_loop", lambda: clock)
    return clock


@pytest.fixture
def patient(clock: Clock) -> Patient:
    return Patient(clock, suspect_after=3.0)


def test_silent_peer_is_asked_then_suspected_then_given_up(clock: Clock, patient: Patient) -> None:
    clock.elapse(2.9)
    assert set(patient.said) == {"beat"}
    clock.elapse(0.2)
    assert patient.said[-2:] == ["suspect", "beat"]
    clock.elapse(6.0)
    assert patient.said.count("suspect") == 1
    assert "dead" not in patient.said
    clock.elapse(2.0)
    assert patient.said[-1] == "dead"
    clock.elapse(100.0)
    assert patient.said.count("dead") == 1


def test_peer_that_gives_a_sign_of_life_again_is_well(clock: Clock, patient: Patient) -> None:
    clock.elapse(5.0)
    patient.heart.heard()
    assert patient.said[-1] == "well"
    clock.elapse(2.0)
    patient.heart.heard()
    assert patient.said.count("well") == 1
    clock.elapse(9.0)
    assert patient.said.count("suspect") == 2
    assert "dead" not in patient.said


def test_peer_that_talks_is_not_asked(clock: Clock, patient: Patient) -> None:
    for _ in range(100):
        clock.elapse(0.3)
        patient.heart.heard()
    assert patient.said == []


def test_own_sleep_does_not_count_as_silence(clock: Clock, patient: Patient) -> None:
    clock.elapse(0.5)
    clock.now += 3600.0  # this process was stopped, or its machine
    clock.elapse(0.5)
    assert "suspect" not in patient.said
    assert "dead" not in patient.said
    clock.elapse(3.5)
    assert "suspect" in patient.said


def test_silent_peer_is_given_up_by_a_process_that_is_always_late(clock: Clock, patient: Patient) -> None:
    for _ in range(20):
        clock.now += 2.0
        clock.elapse(0.0)
    assert patient.said[-1] == "dead"
    assert clock.now > 20.0


def test_what_is_heard_while_this_process_is_late_counts_from_then(clock: Clock, patient: Patient) -> None:
    clock.now += 3600.0
    patient.heart.heard()
    clock.elapse(3.5)
    assert "suspect" in patient.said


def test_no_peer_is_suspected_before_the_end_unless_it_is_asked_for(clock: Clock) -> None:
    patient = Patient(clock)
    clock.elapse(9.9)
    assert "suspect" not in patient.said
