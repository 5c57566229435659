"""The direction of a config that does not name one."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.config.directions import default_direction


def config(**more: Any) -> ExperimentConfig:
    return ExperimentConfig.from_dict({"search_space": {}, "trial_command": "x", **more})


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, "minimize"),
        ({"tuner": "maximize"}, "maximize"),
        ({"assessor": "maximize"}, "maximize"),
        ({"tuner": "minimize", "assessor": "maximize"}, "minimize"),
    ],
)
def test_default_of_the_tuner_wins_over_the_assessor_s(own: dict[str, str], expected: str) -> None:
    assert default_direction(config(tuner="TPE", assessor="Medianstop"), own)[0] == expected


def test_direction_that_the_config_names_stays() -> None:
    named = config(objectives=[{"direction": "minimize"}]).with_direction({"tuner": "maximize"})
    assert (named.objectives[0].direction, named.direction_note) == ("minimize", "")
