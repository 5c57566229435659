"""Values in place of those in a config file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ConfigError, load_config
from pitchpipe.config.overrides import read_overridden

TEXT = """\
searchSpace:
  lr: {_type: uniform, _value: [0, 1]}
trialCommand: sh trial.sh
maxTrialNumber: 9
tuner: TPE
objectives: [{name: loss, direction: minimize}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a config file."""
    path = tmp_path / "a.yml"
    path.write_text(TEXT)
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_trial_number", "--set max_trial_number: is not KEY=VALUE (such as --set max_trial_number=5"),
        ("a..b=1", "--set a..b=1: is not KEY=VALUE"),
        ("max_trial_number=[1", "--set max_trial_number=[1:1:3: is not valid YAML"),
        (
            "objectives.3.name=x",
            "--set objectives.3.name=x: there is no item 3 (the list has 1, counted from 0)",
        ),
        ("max_trial_number.x=1", "--set max_trial_number.x=1: maxTrialNumber is no mapping, and has no x"),
        ("max_trial_number=-1", "--set max_trial_number: maxTrialNumber: must be"),
        (
            "max_trial_numbr=3",
            "--set max_trial_numbr: unknown field (did you mean max_trial_number?)",
        ),
        ("search_space.x._value=[1, 2]", "--set search_space.x._value: searchSpace.x: _type is missing"),
        ("assessor.class_args.n=1", "--set assessor.class_args.n: assessor: needs a name, or class_name"),
        ("assessor.class_args.n=1", "code_directory (such as assessor.name: Medianstop)"),
        ("search_space.lr._type=unifrm", "--set search_space.lr._type: searchSpace.lr._type: "),
    ],
)
def test_problem_is_shown_at_the_option(file: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_config(file, overrides=[text], check_plugins=False)
    assert said in str(error.value)


def test_problems_of_the_rest_keep_their_places(file: Path) -> None:
    file.write_text(TEXT.replace("maxTrialNumber", "maxTrialNumbr"))
    with pytest.raises(ConfigError) as error:
        load_config(file, overrides=["trial_concurrency=0"], check_plugins=False)
    assert f"{file}:4:1: maxTrialNumbr: unknown field" in str(error.value)
    assert "--set trial_concurrency: must be " in str(error.value)
