"""Objectives and limits on outcomes, as users write them."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig

SMALLEST = {"search_space": {}, "trial_command": "x"}
LOSS = {"name": "loss", "direction": "minimize"}


def test_no_objective_has_to_be_called_default() -> None:
    objectives = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "constraint": " <= 20 "}]
    config = ExperimentConfig.from_dict({**SMALLEST, "objectives": objectives})
    assert config.canonical()["objectives"] == [
        {"name": "loss", "direction": "minimize"},
        {"name": "ms", "constraint": "<= 20"},
    ]
    assert config.goal == "minimizing loss, limit ms <= 20"
    assert ExperimentConfig.from_canonical(config.canonical()) == config


@pytest.mark.parametrize(
    ("objectives", "problem"),
    [
        (
            [LOSS, {"name": "ms", "constraint": "< 2"}],
            "objectives[1].constraint: '< 2' is not <= NUMBER or >= NUMBER"
            ' (such as "<= 20" or ">= 0.5, <= 1", in quotes)',
        ),
        (
            [LOSS, {"name": "ms", "constraint": ">= 2, <= 1"}],
            'objectives[1].constraint: no value is >= 2, <= 1 (such as "<= 20" or ">= 0.5, <= 1", in quotes)',
        ),
        (
            [LOSS, {"name": "ms", "constraint": "<= 1e999"}],
            'objectives[1].constraint: "<= 1e999" is too large a number for a limit'
            ' (such as "<= 20" or ">= 0.5, <= 1", in quotes)',
        ),
        (
            [LOSS, {"name": "ms", "constraint": 20}],
            'objectives[1].constraint: must be text, not 20 (such as "<= 20" or ">= 0.5, <= 1", in quotes)',
        ),
        (
            [{**LOSS, "reference": float("inf")}],
            "objectives[0].reference: must be a finite number, not Infinity",
        ),
        (
            [{**LOSS, "reference": "1"}],
            'objectives[0].reference: must be a number, not "1" (write 1 without quotes)',
        ),
    ],
)
def test_malformed_objective_is_a_problem_with_a_place(objectives: list[Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig.from_dict({**SMALLEST, "objectives": objectives})
    assert [str(found) for found in caught.value.problems] == [problem]
