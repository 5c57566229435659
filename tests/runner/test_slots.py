"""Slots and the agents that run trials in them."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import StartTrial
from pitchpipe.runner.experiment_state import Retries
from pitchpipe.runner.ledger import Request, Totals
from pitchpipe.runner.slots import Slots
from pitchpipe.runner.trial import Trial, TrialStatus

from .driver import Driver, of_type, running_trial
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
    driver, trial = running_trial(trial_concurrency=1, retries=Retries(0))
    driver.end(trial, lost=True)
    (start,) = of_type(driver.propose(x=2), StartTrial)
    assert (trial.agent, start.order.agent) == ("0-0", "0-1")


def test_silent_agent_gets_nothing_new_until_it_gives_a_sign_of_life() -> None:
    driver = Driver(trial_concurrency=1)
    first = driver.running_trial()
    assert first.agent == "0-0"
    driver.handle(happened.AgentSilent(driver.now, "0-0"))
    assert list(driver.runner.warnings()) == ["agent 0-0 gives no sign of life: trial 0 runs there"]
    driver.end(first)
    assert list(driver.runner.warnings()) == ["agent 0-0 gives no sign of life: it gets nothing new to do"]
    second = driver.running_trial()
    assert second.agent == "1-0"
    driver.handle(happened.AgentSilent(driver.now, "0-0", is_over=True))
    assert list(driver.runner.warnings()) == []
    driver.end(second)
    assert driver.running_trial().agent == "0-0"
    assert broken_invariants(driver.runner) == []


def test_name_of_an_agent_that_was_lost_while_it_was_idle_is_not_used_again() -> None:
    driver = Driver(trial_concurrency=1)
    driver.end(driver.running_trial())
    driver.handle(happened.AgentSilent(driver.now, "0-0"))
    for _ in range(2):  # the second report of the same loss changes nothing
        driver.handle(happened.AgentLost(driver.now, "0-0"))
    assert list(driver.runner.warnings()) == []
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
            slots.restore(taken.values(), lost)


def queued(most: int = 3, **limits: Any) -> tuple[Driver, list[Trial]]:
    """Return a driver with one slot, where short trials queue, and its assigned trials."""
    driver = Driver(
        totals=Totals(amounts={"CPU": 1.0}, orders_per_agent=most), request=Request(cpus=1.0), **limits
    )
    for _ in range(8):
        driver.succeed(driver.running_trial(learns=False))
    for number in range(driver.runner.requested):
        driver.propose(x=number)
    return driver, driver.runner._trials.assigned()


def test_short_trials_queue_in_the_agent_that_runs_the_one_before() -> None:
    driver, trials = queued(trial_concurrency=1)
    assert [trial.sequence_id for trial in trials] == [8, 9, 10]
    assert {(trial.slot, trial.agent) for trial in trials} == {(0, "0-0")}
    assert driver.runner.why_waiting(trials[1]) == "its agent 0-0 runs trial 8 first"
    driver.start(trials[0])
    (start,) = of_type(driver.succeed(trials[0]), StartTrial)
    assert (start.order.sequence_id, start.order.agent) == (11, "0-0")


def test_trials_queue_where_the_fewest_do() -> None:
    driver, trials = queued(trial_concurrency=2)
    driver.handle(happened.TotalsChanged(driver.now, Totals(amounts={"CPU": 2.0}, orders_per_agent=3)))
    assert Counter(trial.slot for trial in driver.runner._trials.assigned()) == {0: 3, 1: 3}
    assert trials == driver.runner._trials.assigned()[:1]


def test_nothing_queues_after_a_trial_that_took_longer() -> None:
    driver, trials = queued(trial_concurrency=1)
    driver.start(trials[0])
    driver.now += 0.02
    assert of_type(driver.succeed(trials[0]), StartTrial) == []


def test_nothing_queues_until_eight_trials_in_a_row_were_short() -> None:
    driver, trials = queued(trial_concurrency=1)
    driver.start(trials[0])
    driver.now += 0.02
    driver.succeed(trials[0])
    assigned = driver.runner._trials.assigned
    for _ in range(8):
        assert len(assigned()) <= 2  # those that were queued before
        for _ in range(driver.runner.requested):
            driver.propose(x=0)
        driver.start(assigned()[0])
        driver.succeed(assigned()[0])
    assert len(assigned()) == 3


def test_nothing_queues_behind_a_trial_that_takes_long() -> None:
    driver, _ = queued(most=1, trial_concurrency=2)
    driver.handle(happened.TotalsChanged(driver.now, Totals(amounts={"CPU": 2.0})))
    long, short = driver.runner._trials.assigned()
    short_slot = short.slot
    driver.start(long)
    driver.now += 0.2
    driver.start(short)
    driver.handle(happened.TotalsChanged(driver.now, Totals(amounts={"CPU": 2.0}, orders_per_agent=3)))
    driver.succeed(short)
    assert Counter(trial.slot for trial in driver.runner._trials.assigned()) == {long.slot: 1, short_slot: 3}


def test_nothing_queues_on_a_silent_agent() -> None:
    driver, trials = queued(trial_concurrency=1)
    driver.handle(happened.AgentSilent(driver.now, "0-0"))
    driver.start(trials[0])
    assert of_type(driver.succeed(trials[0]), StartTrial) == []


def test_nothing_queues_while_more_slots_are_taken_than_may_be() -> None:
    driver, _ = queued(trial_concurrency=2)
    driver.handle(happened.TotalsChanged(driver.now, Totals(amounts={"CPU": 2.0}, orders_per_agent=3)))
    driver.handle(happened.LimitsChanged(driver.now, 1))
    first = driver.runner._trials.assigned()[0]
    driver.start(first)
    assert of_type(driver.succeed(first), StartTrial) == []


def test_trial_that_never_began_is_given_back_without_a_failure_and_before_all_others() -> None:
    driver, trials = queued(trial_concurrency=1)
    driver.start(trials[0])
    for trial in reversed(trials[1:]):
        driver.handle(happened.StartRefused(driver.now, trial.trial_id, 1, reason="its agent is gone"))
    (start,) = of_type(driver.end(trials[0], lost=True, exit_code=None), StartTrial)
    assert start.order.agent == "0-1"
    waiting = [start.order.sequence_id, *(trial.sequence_id for trial in driver.runner.waiting)]
    assert waiting[:4] == [9, 10, 8, 11]
    assert [trial.failed for trial in trials] == [{"INFRA": 1}, {}, {}]


def test_queued_trial_that_was_killed_ends_although_its_agent_is_gone() -> None:
    driver, trials = queued(trial_concurrency=1)
    driver.handle(happened.TrialKillRequested(driver.now, trials[1].trial_id))
    driver.handle(happened.StartRefused(driver.now, trials[1].trial_id, 1, reason="its agent is gone"))
    assert trials[1].status is TrialStatus.USER_CANCELED


def test_trial_that_ran_before_starts_in_a_slot_of_its_own() -> None:
    driver, trials = queued(trial_concurrency=1, retries=Retries(2))
    driver.start(trials[0])
    assert of_type(driver.end(trials[0], exit_code=1), StartTrial) == []
    for trial in trials[1:]:
        driver.start(trial)
        started = of_type(driver.succeed(trial), StartTrial)
    assert started[0].order.trial_id == trials[0].trial_id


def test_queue_is_the_same_after_a_restart() -> None:
    driver, trials = queued(trial_concurrency=1)
    driver.start(trials[0])
    old = driver.runner.orders()
    driver.restart()
    assert driver.runner.orders() == old
    assert len(old) == 3
