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
    direction, note = default_direction(config(tuner="TPE", assessor="Medianstop"), own)
    assert direction == expected
    assert note.startswith(f"{expected[:-1]}ing default: no direction is given, and ")


def test_note_names_the_class_that_decided() -> None:
    assert default_direction(config(tuner="GP"), {"tuner": "maximize"})[1].endswith(
        "maximize is the default of the tuner GP"
    )
    own_class = {"class_name": "mine.Tuner", "code_directory": "."}
    assert default_direction(config(tuner=own_class), {"tuner": "maximize"})[1].endswith("tuner mine.Tuner")


def test_note_says_that_no_class_has_a_direction() -> None:
    assert default_direction(config(tuner="Random"), {})[1].endswith("no algorithm has one")


def test_note_names_an_assessor_that_is_overruled() -> None:
    own = {"tuner": "minimize", "assessor": "maximize"}
    note = default_direction(config(tuner="TPE", assessor="Medianstop"), own)[1]
    assert note.endswith("; the assessor Medianstop, whose own default is maximize, follows")


def test_direction_that_the_config_names_stays() -> None:
    named = config(objectives=[{"direction": "minimize"}]).with_direction({"tuner": "maximize"})
    assert (named.objectives[0].direction, named.direction_note) == ("minimize", "")
