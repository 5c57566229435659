"""A brushed axis is a condition that the table of trials understands, whatever the names."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.server.figures import ExperimentTable, Objective, TrialRecord, dimensions_of, plot_parallel
from pitchpipe.server.pages.brushing import Brush, brushed
from pitchpipe.store.reading import Condition


def table_of(space: dict[str, Any], points: list[dict[str, Any]]) -> ExperimentTable:
    trials = [TrialRecord(n, "SUCCEEDED", point, {"default": 1.0}) for n, point in enumerate(points)]
    return ExperimentTable.of("brushed", [Objective()], trials, dimensions_of(space))


@pytest.mark.parametrize("name", ["a=b", "c < d", "p and q", "x", "é"])
def test_range_of_a_number_is_a_condition_on_its_parameter(name: str) -> None:
    space = {name: {"_type": "uniform", "_value": [0, 1]}}
    found = Condition.parse_all(brushed(table_of(space, [{name: 0.5}]), [(0.2, 0.7), None]).where)
    assert found == [Condition(f"parameters.{name}", ">=", 0.2), Condition(f"parameters.{name}", "<=", 0.7)]


def test_trial_without_a_brushed_parameter_does_not_match() -> None:
    inner = {"_type": "choice", "_value": ["a", "b", "c"]}
    space = {"m": {"_type": "choice", "_value": [{"_name": "one", "k": inner}, {"_name": "two"}]}}
    points = [{"m": {"_name": "one", "k": "a"}}, {"m": {"_name": "two"}}]
    found = Condition.parse_all(
        brushed(table_of(space, points), [None, (-0.4, 1.4), None], None, ["m", "m.k"]).where
    )
    assert found == [Condition("parameters.m.k", "!=", "c"), Condition("parameters.m.k", "!=", None)]


def test_how_trials_ended_and_their_metrics_are_conditions_too() -> None:
    limit = Objective(name="ms", direction=None, at_most=20.0)
    trials = [TrialRecord(0, "SUCCEEDED", {"x": 0.0}, {"default": 1.0, "ms": 5.0}, {"a=b": 3.0})]
    trials += [TrialRecord(1, "SUCCEEDED", {"x": 0.5}, {"default": 2.0, "ms": 50.0}, {"a=b": 4.0})]
    trials += [TrialRecord(2, "EARLY_STOPPED", {"x": 1.0}, {}, {"default": 9.0, "a=b": 5.0})]
    table = ExperimentTable.of("brushed", [Objective()], trials, limits=[limit])
    axes = [axis.label for axis in plot_parallel(table, "a=b").data[0].dimensions]
    assert axes == ["x", "how it ended", "result", "ms", "a=b"]
    whole = ("EARLY_STOPPED", "SUCCEEDED")
    assert brushed(table, [None] * 5, "a=b") == Brush("", whole)
    assert brushed(table, [None, (0.9, 1.1), None, None, None], "a=b") == Brush("", ("EARLY_STOPPED",))
    assert brushed(table, [None, (-0.1, 0.1), None, None, None], "a=b") == Brush("", ("SUCCEEDED",))
    found = brushed(table, [None, None, (1.0, 2.0), (0.0, 9.0), (3.0, 4.0)], "a=b")
    assert [(one.field, one.symbol, one.value) for one in Condition.parse_all(found.where)] == [
        ("value.default", ">=", 1),
        ("value.default", "<=", 2),
        ("value.ms", ">=", 0),
        ("value.ms", "<=", 9),
        ("final.a=b", ">=", 3),
        ("final.a=b", "<=", 4),
    ]
    assert brushed(table, [None, (1.0, 2.0)], stopped=False).statuses == ("SUCCEEDED",)
