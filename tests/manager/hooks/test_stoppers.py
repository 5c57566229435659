"""Stoppers: when each of them ends a trial or the experiment, what it refuses, what it says about it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable
from typing import Any

import cloudpickle
import pytest

from pitchpipe.manager.hooks.stoppers import (
    CombinedStopper,
    CriteriaStopper,
    ExperimentPlateauStopper,
    FunctionStopper,
    MaximumIterationStopper,
    Stopper,
    StopperError,
    TimeoutStopper,
    TrialPlateauStopper,
    as_stopper,
)


def verdicts(stopper: Stopper, values: Iterable[Any], trial: str = "a") -> list[bool]:
    """Return what a stopper decides on one trial's results, one after the other."""
    return [
        stopper(trial, {"default": value, "training_iteration": number})
        for number, value in enumerate(values, start=1)
    ]


def first_end(stopper: Stopper, values: Iterable[Any], trial: str = "a") -> int | None:
    """After how many results a trial is ended; None: never."""
    said = verdicts(stopper, values, trial)
    return said.index(True) + 1 if True in said else None


def test_base_ends_nothing() -> None:
    assert (Stopper()("a", {}), Stopper().stop_all(), Stopper().time_left()) == (False, False, None)


def test_maximum_iteration_counts_each_trial_for_itself() -> None:
    stopper = MaximumIterationStopper(3)
    assert first_end(stopper, [1.0] * 5, "a") == 3
    assert first_end(stopper, [1.0] * 2, "b") is None
    assert stopper.reason() == "3 results are enough"


def test_maximum_iteration_counts_on_after_a_checkpoint() -> None:
    assert MaximumIterationStopper(10)(
        "a", {"training_iteration": 10}
    )  # the first that this stopper hears of


@pytest.mark.parametrize(
    ("values", "end"),
    [
        ([5.0, 4.0, 3.0, 3.0, 3.0, 3.0], 6),
        ([1.0, 1.0, 1.0, 1.0], 4),
        ([1.0, 2.0] * 5, None),
        ([1.0, 1.0, 1.0, math.nan, 1.0, 1.0, 1.0, 1.0], 8),
        (["x", "x", "x", "x", "x"], None),
        ([1.0, 1.001, 0.999, 1.0], 4),
    ],
)
def test_trial_plateau_ends_at_a_standstill(values: list[Any], end: int | None) -> None:
    assert first_end(TrialPlateauStopper(std=0.01, num_results=4, grace_period=4), values) == end


def test_trial_plateau_leaves_its_grace_alone() -> None:
    assert first_end(TrialPlateauStopper(num_results=2, grace_period=7), [1.0] * 10) == 7


@pytest.mark.parametrize(("mode", "threshold", "end"), [("min", 0.5, 6), ("max", 0.5, 2), ("max", 2.0, None)])
def test_trial_plateau_waits_for_a_good_value(mode: Any, threshold: float, end: int | None) -> None:
    stopper = TrialPlateauStopper(num_results=2, grace_period=0, metric_threshold=threshold, mode=mode)
    assert first_end(stopper, [1.0, 1.0, 1.0, 1.0, 0.1, 0.1]) == end


def test_trial_plateau_sees_each_trial_for_itself() -> None:
    stopper = TrialPlateauStopper(num_results=2, grace_period=2)
    assert not stopper("a", {"default": 1.0})
    assert not stopper("b", {"default": 1.0})
    assert stopper("a", {"default": 1.0})


def ends(stopper: Stopper, results: Iterable[tuple[str, float]]) -> list[bool]:
    """Whether a stopper ends the experiment, after each result."""
    return [(stopper(trial, {"default": value}), stopper.stop_all())[1] for trial, value in results]


def test_experiment_plateau_needs_several_trials_as_good() -> None:
    stopper = ExperimentPlateauStopper(std=0.01, top=3)
    results = [("a", 0.5), ("b", 0.9), ("c", 0.5), ("d", 0.7), ("e", 0.5)]
    assert ends(stopper, results) == [False, False, False, False, True]
    assert stopper.reason() == "default of the 3 best trials differs by no more than 0.01"


@pytest.mark.parametrize(
    ("options", "results", "end"),
    [
        pytest.param({}, [("a", 0.5)] * 20, None, id="not made by one trial"),
        pytest.param({}, [("a", 0.5), ("a", 0.9), ("b", 0.5)], 3, id="a trial counts with its best value"),
        pytest.param(
            {"patience": 2},
            [("a", 0.5), ("b", 0.5), ("c", 0.1), ("d", 0.1), ("e", 0.9), ("f", 0.9)],
            6,
            id="something better ends it",
        ),
        pytest.param({"mode": "max"}, [("a", 0.9), ("b", 0.1), ("c", 0.1), ("d", 0.9)], 4, id="maximised"),
        pytest.param({}, [("a", math.nan), ("b", math.nan), ("c", 1.0)], None, id="not of NaN"),
    ],
)
def test_experiment_plateau(
    options: dict[str, Any], results: list[tuple[str, float]], end: int | None
) -> None:
    found = ends(ExperimentPlateauStopper(std=0.01, top=2, **options), results)
    assert found == [number + 1 == end for number in range(len(results))]


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


def test_function_is_asked() -> None:
    stopper = FunctionStopper(lambda trial_id, result: trial_id == "b" and result["default"] < 0)
    assert first_end(stopper, [-1.0], "a") is None
    assert first_end(stopper, [1.0, -1.0], "b") == 2


def test_criteria_end_at_the_first_that_is_met() -> None:
    stopper = CriteriaStopper({"training_iteration": 5, "default": 0.9})
    assert first_end(stopper, [0.1, 0.95]) == 2
    assert stopper.reason() == "default has reached 0.9"
    assert first_end(stopper, [0.1] * 9) == 5
    assert stopper.reason() == "training_iteration has reached 5"


def test_criterion_that_no_result_has_is_an_error() -> None:
    with pytest.raises(StopperError, match="'acuracy' is not in the result"):
        CriteriaStopper({"acuracy": 0.9})("a", {"accuracy": 0.95})
    assert not CriteriaStopper({"steps": 9})("a", {"default": 1, "done": True})


def test_criterion_is_not_met_by_a_result_that_is_not_a_number() -> None:
    stopper = CriteriaStopper({"default": 0.9})
    assert not any(stopper("a", {"default": value}) for value in ("high", None, [1.0], float("nan")))
    assert stopper("a", {"default": 0.9})


def test_combined_ends_what_any_ends_and_says_who() -> None:
    stopper = CombinedStopper(MaximumIterationStopper(5), TrialPlateauStopper(num_results=2, grace_period=2))
    assert first_end(stopper, [3.0, 2.0, 2.0]) == 3
    assert stopper.reason().startswith("default has changed")
    assert first_end(stopper, [5.0, 4.0, 3.0, 2.0, 1.0], "b") == 5
    assert stopper.reason() == "5 results are enough"


def test_combined_tells_every_result_to_all() -> None:
    plateau = TrialPlateauStopper(num_results=2, grace_period=3)
    stopper = CombinedStopper(MaximumIterationStopper(1), plateau)
    assert verdicts(stopper, [1.0, 1.0]) == [True, True]
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
    assert stopper is not None
    verdicts(stopper, [1.0])
    assert pickle.loads(cloudpickle.dumps(stopper))("a", {"default": 1.0})
