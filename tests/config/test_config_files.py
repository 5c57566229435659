"""Values in place of those in a config file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ConfigError, load_config
from pitchpipe.config.config_files import read_overridden

from .refusals import OVERRIDDEN


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a config file."""
    path = tmp_path / "a.yml"
    path.write_text(OVERRIDDEN)
    return path


@pytest.mark.parametrize(
    ("texts", "path", "value"),
    [
        (["max_trial_number=5"], ["maxTrialNumber"], 5),
        (["max_trial_number=5", "maxTrialNumber=6"], ["maxTrialNumber"], 6),
        (["max_experiment_duration=2h"], ["max_experiment_duration"], "2h"),
        (["max_trial_number="], ["maxTrialNumber"], None),
        (["search_space.lr._value=[0, 1e-2]"], ["searchSpace", "lr", "_value"], [0, 0.01]),
        (["search_space.LR={_type: choice, _value: [a]}"], ["searchSpace", "LR", "_value"], ["a"]),
        (["tuner.class_args.seed=7"], ["tuner"], {"name": "TPE", "class_args": {"seed": 7}}),
        (["objectives.0.direction=maximize"], ["objectives", 0, "direction"], "maximize"),
        (["objectives.0.constraint=>= 0.5, <= 1"], ["objectives", 0, "constraint"], ">= 0.5, <= 1"),
        (["trialCommand=python train.py --a=b"], ["trialCommand"], "python train.py --a=b"),
    ],
)
def test_value_takes_the_place_of_the_files(
    file: Path, texts: list[str], path: list[Any], value: Any
) -> None:
    found = read_overridden(file, texts).data
    for step in path:
        found = found[step]
    assert found == value


def test_problems_of_the_rest_keep_their_places(file: Path) -> None:
    file.write_text(OVERRIDDEN.replace("maxTrialNumber", "maxTrialNumbr"))
    with pytest.raises(ConfigError) as error:
        load_config(file, overrides=["trial_concurrency=0"], check_plugins=False)
    assert f"{file}:4:1: maxTrialNumbr: unknown field" in str(error.value)
    assert "--set trial_concurrency: must be " in str(error.value)
