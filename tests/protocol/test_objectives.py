"""Objectives and the limits on outcomes, as a configuration names them."""

from __future__ import annotations

import math

import pytest

from pitchpipe.protocol import (
    MetricError,
    Objective,
    constraint_limits,
    main_objective,
    objectives_of,
    with_default,
)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("<= 20", (-math.inf, 20.0)),
        (">=-1.5e-3", (-0.0015, math.inf)),
        (" >= 0.5 ,<= 1 ", (0.5, 1.0)),
        ("<= 3, <= 2", (-math.inf, 2.0)),
        (">= .5, >= 1.", (1.0, math.inf)),
    ],
)
def test_constraint_sets_limits(text: str, limits: tuple[float, float]) -> None:
    assert constraint_limits(text) == limits


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'' is not"),
        ("< 20", "'< 20' is not"),
        ("<= twenty", "'<= twenty' is not"),
        ("<= nan", "'<= nan' is not"),
        ("<= 1, ", "'' is not"),
        (">= 2, <= 1", "no value is >= 2, <= 1"),
    ],
)
def test_constraint_that_means_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        constraint_limits(text)


def test_main_objective_is_default_or_the_first_with_a_direction() -> None:
    limit, loss = {"name": "ms", "constraint": "<= 9"}, {"name": "loss", "direction": "minimize"}
    default = {"direction": "maximize"}
    assert main_objective(objectives_of([limit, loss, default])).name == "default"
    assert main_objective(objectives_of([limit, loss])).name == "loss"
    assert main_objective(()).direction == "minimize"


@pytest.mark.parametrize(
    ("constraint", "value", "excess", "violation"),
    [
        ("<= 2", -math.inf, -math.inf, 0.0),
        ("<= 2", math.inf, math.inf, math.inf),
        (">= 2", math.inf, -math.inf, 0.0),
        (">= 2", -math.inf, math.inf, math.inf),
        (">= 1, <= 2", -math.inf, math.inf, math.inf),
        (">= 1, <= 2", 1.75, -0.25, 0.0),
        ("<= 0.3", 0.1 + 0.2, 0.0, 0.0),
        (">= 0.8", 1 - 0.1 - 0.1, 0.0, 0.0),
    ],
)
def test_excess_over_limits(constraint: str, value: float, excess: float, violation: float) -> None:
    (one,) = objectives_of([{"name": "ms", "constraint": constraint}])
    assert (one.excess_of(value), one.violation(value)) == (excess, violation)


def test_loss_and_excess_of_a_report() -> None:
    (both,) = objectives_of([{"name": "f1", "direction": "maximize", "constraint": ">= 0.5"}])
    assert both.loss({"f1": 0.75}) == -0.75
    assert (both.excess({"f1": 0.75}), both.excess({"f1": 0.25})) == (-0.25, 0.25)
    assert not Objective().is_limited
    with pytest.raises(MetricError, match="without 'f1'"):
        both.excess({"default": 1.0})


def test_main_metric_is_also_called_default() -> None:
    assert with_default({"loss": 1.0, "default": 2.0}, "loss") == {"loss": 1.0, "default": 1.0}
    assert with_default({"acc": 1.0}, "loss") == {"acc": 1.0}
    assert with_default(0.5, "loss") == 0.5
