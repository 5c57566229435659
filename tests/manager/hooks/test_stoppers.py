"""Stoppers: their time, their combinations, their pickles; when each ends what is in ../test_sentences.txt."""

from __future__ import annotations

import pickle

import cloudpickle

from pitchpipe.manager.hooks.stoppers import (
    CombinedStopper,
    CriteriaStopper,
    FunctionStopper,
    MaximumIterationStopper,
    Stopper,
    TimeoutStopper,
    TrialPlateauStopper,
    as_stopper,
)


def test_base_ends_nothing() -> None:
    assert (Stopper()("a", {}), Stopper().stop_all(), Stopper().time_left()) == (False, False, None)


def test_maximum_iteration_counts_what_ran_before_it_was_made() -> None:
    assert MaximumIterationStopper(10)("a", {"training_iteration": 10})


def test_timeout_goes_by_the_experiments_own_time() -> None:
    stopper = TimeoutStopper(60)
    assert not stopper.stop_all()
    now = [59.0]
    stopper.begin(lambda: now[0])
    assert (stopper.stop_all(), stopper.time_left()) == (False, 1.0)
    now[0] = 60.0
    assert (stopper.stop_all(), stopper.time_left()) == (True, 0.0)
    assert stopper.reason() == "its 60 s are over"


def test_timeout_is_kept_and_the_time_that_was_used_is_not() -> None:
    stopper = TimeoutStopper(60)
    stopper.begin(lambda: 1000.0)
    copy = pickle.loads(pickle.dumps(stopper))
    assert (copy.timeout, copy.stop_all()) == (60, False)


def test_criterion_is_not_looked_for_in_a_result_that_is_the_last() -> None:
    assert not CriteriaStopper({"steps": 9})("a", {"default": 1, "done": True})


def test_combined_tells_every_result_to_all() -> None:
    plateau = TrialPlateauStopper(num_results=2, grace_period=3)
    stopper = CombinedStopper(MaximumIterationStopper(1), plateau)
    assert [stopper("a", {"default": 1.0, "training_iteration": number}) for number in (1, 2)] == [True, True]
    assert plateau("a", {"default": 1.0})


def test_combined_has_the_shortest_time() -> None:
    stopper = CombinedStopper(TimeoutStopper(60), TimeoutStopper(20), MaximumIterationStopper(1))
    stopper.begin(lambda: 15.0)
    assert (stopper.time_left(), stopper.stop_all()) == (5.0, False)
    stopper.begin(lambda: 25.0)
    assert (stopper.stop_all(), stopper.reason()) == (True, "its 20 s are over")
    assert CombinedStopper(Stopper()).time_left() is None


def test_whatever_users_give_becomes_a_stopper() -> None:
    maximum = MaximumIterationStopper(3)
    assert as_stopper(None) is None
    assert as_stopper(maximum) is maximum
    assert isinstance(as_stopper({"training_iteration": 3}), CriteriaStopper)
    assert isinstance(as_stopper(lambda trial_id, result: True), FunctionStopper)
    both = as_stopper([{"training_iteration": 3}, TimeoutStopper(5)])
    assert isinstance(both, CombinedStopper)
    assert [type(one) for one in both.stoppers] == [CriteriaStopper, TimeoutStopper]


def test_stoppers_travel_by_cloudpickle_with_what_they_know() -> None:
    stopper = as_stopper([lambda trial_id, result: False, TrialPlateauStopper(num_results=2, grace_period=2)])
    stopper("a", {"default": 1.0})
    assert pickle.loads(cloudpickle.dumps(stopper))("a", {"default": 1.0})
