"""A brushed axis is a condition that the table of trials understands, whatever the names."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.server.figures import ExperimentTable, Objective, TrialRecord, dimensions_of
from pitchpipe.server.pages.plots_page import brushed
from pitchpipe.store.reading import Condition


def table_of(space: dict[str, Any], points: list[dict[str, Any]]) -> ExperimentTable:
    trials = [TrialRecord(n, "SUCCEEDED", point, {"default": 1.0}) for n, point in enumerate(points)]
    return ExperimentTable.of("brushed", [Objective()], trials, dimensions_of(space))


@pytest.mark.parametrize("name", ["a=b", "c < d", "p and q", "x", "é"])
def test_range_of_a_number_is_a_condition_on_its_parameter(name: str) -> None:
    space = {name: {"_type": "uniform", "_value": [0, 1]}}
    found = Condition.parse_all(brushed(table_of(space, [{name: 0.5}]), [(0.2, 0.7), None]))
    assert found == [Condition(f"parameters.{name}", ">=", 0.2), Condition(f"parameters.{name}", "<=", 0.7)]


def test_trial_without_a_brushed_parameter_does_not_match() -> None:
    inner = {"_type": "choice", "_value": ["a", "b", "c"]}
    space = {"m": {"_type": "choice", "_value": [{"_name": "one", "k": inner}, {"_name": "two"}]}}
    points = [{"m": {"_name": "one", "k": "a"}}, {"m": {"_name": "two"}}]
    found = Condition.parse_all(
        brushed(table_of(space, points), [None, (-0.4, 1.4), None], None, ["m", "m.k"])
    )
    assert found == [Condition("parameters.m.k", "!=", "c"), Condition("parameters.m.k", "!=", None)]
