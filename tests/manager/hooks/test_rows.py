"""Trials and results as callbacks and stoppers get them."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from pitchpipe.manager.hooks.hooks import result_row, trial_row
from pitchpipe.protocol import Objective, dumps
from pitchpipe.runner.effects import MetricRow
from pitchpipe.runner.trial import Trial

from ...runner.driver import Driver

LOSS = Objective(name="loss")
LIMIT = Objective(name="ms", direction=None, at_most=20.0)


def reported(trial: Trial, value: str) -> MetricRow:
    return MetricRow(trial=trial, attempt=1, kind="PERIODICAL", sequence=0, value=value, time=1.0)


def test_value_has_what_is_optimised_and_not_what_is_only_limited() -> None:
    trial = Driver().running_trial()
    trial.values = (0.5, 12.0)
    assert trial_row(trial, [LOSS, LIMIT])["value"] == 0.5
    assert trial_row(trial, [LOSS, Objective(name="cost")])["value"] == {"loss": 0.5, "cost": 12.0}


def test_main_objective_of_a_result_is_also_called_default() -> None:
    trial = Driver().running_trial()
    row = result_row(reported(trial, '{"loss": 0.5, "ms": 3}'), [LOSS, LIMIT])
    assert (row["default"], row["loss"], row["ms"]) == (0.5, 0.5, 3)
    row = result_row(reported(trial, "0.25"), [LOSS])
    assert (row["default"], row["loss"]) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("done", "counts"),
    [
        (True, True),
        (1, True),
        (False, False),
        (0, False),
        (None, False),
        (float("nan"), False),
        ("no", False),
        ([1], False),
        (numpy.ones(2), False),
    ],
)
def test_only_a_true_done_counts(done: Any, counts: bool) -> None:
    row = result_row(reported(Driver().running_trial(), dumps({"default": 0.5, "done": done})))
    assert row["done"] is counts
