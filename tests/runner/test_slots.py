"""Slots and the agents that run trials in them."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.runner import events as happened
from pitchpipe.runner.description import warnings_of
from pitchpipe.runner.effects import StartTrial
from pitchpipe.runner.limits import Retries
from pitchpipe.runner.slots import Slots
from pitchpipe.runner.trial import Trial

from .driver import Driver, of_type
from .invariants import broken_invariants


def test_proposed_parameters_start_a_trial_on_the_lowest_free_slot() -> None:
    driver = Driver()
    driver.ready()
    (first,) = of_type(driver.propose(x=1), StartTrial)
    (second,) = of_type(driver.propose(x=2), StartTrial)
    assert [first.order.slot, second.order.slot] == [0, 1]
    assert json.loads(first.order.record)["parameters"] == {"x": 1}
    assert first.order.trial_id != second.order.trial_id


def test_name_of_a_lost_agent_is_never_used_again() -> None:
    driver = Driver(trial_concurrency=1, retries=Retries(0))
    trial = driver.running_trial()
    driver.end(trial, lost=True)
    (start,) = of_type(driver.propose(x=2), StartTrial)
    assert (trial.agent, start.order.agent) == ("0-0", "0-1")


def test_silent_agent_gets_nothing_new_until_it_gives_a_sign_of_life() -> None:
    driver = Driver(trial_concurrency=1)
    first = driver.running_trial()
    assert first.agent == "0-0"
    driver.handle(happened.AgentSilent(driver.now, "0-0"))
    assert list(warnings_of(driver.runner)) == ["agent 0-0 gives no sign of life: trial 0 runs there"]
    driver.end(first)
    assert list(warnings_of(driver.runner)) == ["agent 0-0 gives no sign of life: it gets nothing new to do"]
    second = driver.running_trial()
    assert second.agent == "1-0"
    driver.handle(happened.AgentSilent(driver.now, "0-0", is_over=True))
    assert list(warnings_of(driver.runner)) == []
    driver.end(second)
    assert driver.running_trial().agent == "0-0"
    assert broken_invariants(driver.runner) == []


def test_name_of_an_agent_that_was_lost_while_it_was_idle_is_not_used_again() -> None:
    driver = Driver(trial_concurrency=1)
    driver.end(driver.running_trial())
    driver.handle(happened.AgentSilent(driver.now, "0-0"))
    for _ in range(2):  # the second report of the same loss changes nothing
        driver.handle(happened.AgentLost(driver.now, "0-0"))
    assert list(warnings_of(driver.runner)) == []
    trial = driver.running_trial()
    assert trial.agent == "0-1"
    driver.handle(happened.AgentLost(driver.now, "0-1"))  # too late: the slot has a new agent of that name
    driver.end(trial)
    assert driver.running_trial().agent == "0-1"


@given(st.lists(st.integers(0, 4), max_size=40))
def test_lowest_free_slot_is_taken_also_after_a_restart(moves: list[int]) -> None:
    slots, taken = Slots(), dict[int, Trial]()
    for number, move in enumerate(moves):
        if move in taken:
            slots.free(taken.pop(move))
        else:
            trial = Trial(trial_id=str(number), sequence_id=number, parameter_id=0, record="{}", created=0.0)
            slots.take(trial)
            assert trial.slot == next(slot for slot in itertools.count() if slot not in taken)
            taken[trial.slot] = trial
        assert len(slots) == len(taken)
        if number % 5 == 4:
            lost, slots = slots.snapshot(), Slots()
            slots.restore(taken, lost)
