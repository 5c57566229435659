"""Repeats of each configuration: what may be written, and what is said about it."""

from __future__ import annotations

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig, with_plugins_checked

from .refusals import made


def test_number_is_short_for_a_count() -> None:
    config = made(repeats=5)
    assert config.repeats is not None
    assert (config.repeats.count, config.repeats.seed, config.repeats.race) == (5, True, True)
    assert ExperimentConfig.from_canonical(config.canonical()) == config
    assert made(Repeats={"Count": 5}).repeats == config.repeats
    assert made().repeats is None


def test_tuner_that_follows_single_trials_is_refused() -> None:
    given = made(repeats=3, tuner={"name": "ASHA"})
    with pytest.raises(ConfigError, match=r"repeats: .*follows single trials.*such as Auto or TPE"):
        with_plugins_checked(given)
