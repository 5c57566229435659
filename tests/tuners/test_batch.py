"""Batch: the list is served as it is."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.tuners import BatchTuner, NoMoreTrialError


def started(*options: Any) -> BatchTuner:
    tuner = BatchTuner()
    tuner.update_search_space({"run": {"_type": "choice", "_value": list(options)}})
    return tuner


def test_order_and_end() -> None:
    tuner = started({"x": 3}, {"x": 1}, {"x": 2})
    assert [tuner.generate_parameters(i)["x"] for i in range(3)] == [3, 1, 2]
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(3)


@pytest.mark.parametrize("value", [0, 0.0, None, False, {"default": 0}])
def test_imported_configurations_are_left_out_whatever_their_value(value: Any) -> None:
    tuner = started({"x": 0}, {"x": 1, "y": None}, {"x": 2})
    tuner.import_data(
        [{"parameter": {"x": 0}, "value": value}, {"parameter": {"y": None, "x": 1}, "value": value}]
    )
    assert tuner.generate_multiple_parameters([0, 1]) == [{"x": 2}]


def test_nested_names_are_nothing_special() -> None:
    assert started({"_name": "a", "x": 1}).generate_parameters(0) == {"_name": "a", "x": 1}


@pytest.mark.parametrize(
    "space",
    [
        {},
        {"a": {"_type": "uniform", "_value": [0, 1]}},
        {"a": {"_type": "choice", "_value": [{"x": 1}]}, "b": {"_type": "choice", "_value": [{"x": 1}]}},
    ],
)
def test_other_spaces_are_refused(space: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one choice"):
        BatchTuner().update_search_space(space)


def test_options_that_are_not_objects_are_refused() -> None:
    with pytest.raises(ValueError, match="every option of 'run' must be an object of parameters, not 5"):
        started({"x": 1}, 5)


def test_unknown_names_in_constraints_are_refused() -> None:
    tuner = BatchTuner()
    tuner.update_constraints(["lr < 1"])
    with pytest.raises(ValueError, match="lr"):
        tuner.update_search_space({"run": {"_type": "choice", "_value": [{"x": 1}]}})
