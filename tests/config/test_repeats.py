"""Repeats of each configuration: what may be written, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig, with_plugins_checked


def made(**fields: Any) -> ExperimentConfig:
    data = {"search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}, "trial_command": "true"}
    return ExperimentConfig.from_dict({**data, **fields})


def test_number_is_short_for_a_count() -> None:
    config = made(repeats=5)
    assert config.repeats is not None
    assert (config.repeats.count, config.repeats.seed, config.repeats.race) == (5, True, True)
    assert ExperimentConfig.from_canonical(config.canonical()) == config
    assert made(Repeats={"Count": 5}).repeats == config.repeats
    assert made().repeats is None


def test_tuner_that_follows_single_trials_is_refused() -> None:
    given = made(repeats=3, tuner={"name": "ASHA"})
    with pytest.raises(ConfigError) as error:
        with_plugins_checked(given)
    (problem,) = error.value.problems
    assert problem.path == ("repeats",)
    assert "follows single trials, and cannot take the mean of several" in problem.message
    assert "another tuner, such as Auto or TPE" in problem.hint
