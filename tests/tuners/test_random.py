"""Random search: what it draws, and that it does not repeat itself where that would be a waste."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.search_space import SearchSpaceError
from pitchpipe.tuners import NoMoreTrialError, RandomTuner


def started(space: dict[str, Any], seed: int | None = 0) -> RandomTuner:
    tuner = RandomTuner(seed)
    tuner.update_search_space(space)
    return tuner


def test_seeds_give_different_points() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    assert started(space, 1).generate_parameters(0) != started(space, 2).generate_parameters(0)
    assert started(space, None).generate_parameters(0) != started(space, None).generate_parameters(0)


def test_options_are_equally_frequent() -> None:
    space = {"c": {"_type": "choice", "_value": ["a", "b"]}, "x": {"_type": "uniform", "_value": [0, 1]}}
    points = started(space).generate_multiple_parameters(range(1000))
    assert 440 < sum(point["c"] == "a" for point in points) < 560


def test_a_point_of_little_probability_is_still_found() -> None:
    # All but two of the values have a probability below 1e-9, so the grid has to find them.
    tuner = started({"x": {"_type": "qloguniform", "_value": [1e-12, 4, 1]}})
    points = tuner.generate_multiple_parameters(range(10))
    assert sorted(point["x"] for point in points) == [1e-12, 1, 2, 3, 4]


def test_the_branch_without_parameters_is_taken_once() -> None:
    options = [{"_name": "A", "x": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "B"}]
    points = started({"o": {"_type": "choice", "_value": options}}).generate_multiple_parameters(range(50))
    assert [point["o"]["_name"] for point in points].count("B") == 1
    assert len(points) == 50


def test_points_of_an_earlier_space_are_not_repeated() -> None:
    tuner = started({"n": {"_type": "randint", "_value": [0, 3]}})
    tuner.generate_multiple_parameters(range(3))
    tuner.update_search_space({"n": {"_type": "randint", "_value": [0, 4]}})
    assert tuner.generate_parameters(3) == {"n": 3}
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(4)


def test_results_of_others_are_not_repeated() -> None:
    tuner = started({"n": {"_type": "randint", "_value": [0, 2]}})
    tuner.receive_trial_result(77, {"n": 0}, 1.0, customized=True)
    assert tuner.generate_parameters(0) == {"n": 1}


def test_a_wrong_space_says_what_is_wrong() -> None:
    with pytest.raises(SearchSpaceError, match="unifrom"):
        started({"x": {"_type": "unifrom", "_value": [0, 1]}})


def test_suggestions_need_a_space() -> None:
    with pytest.raises(RuntimeError, match="update_search_space"):
        RandomTuner().generate_parameters(0)
