"""Objectives and limits on outcomes, as users write them."""

from __future__ import annotations

from pitchpipe.config import ExperimentConfig

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
