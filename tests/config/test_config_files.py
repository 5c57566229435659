"""Values in place of those in a config file, and paths of a config to file, line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ConfigError, load_config
from pitchpipe.config.config_files import ConfigFiles, read_overridden
from pitchpipe.config.problems import ConfigProblem, Finding
from pitchpipe.config.source import parse_source

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


MAIN = parse_source("tuner:\n  name: TPE\nseed: -1\n", "main.yml")
SPACE = parse_source("lr:\n  _type: unifrom\n", "space.yml")


@pytest.mark.parametrize(
    ("places", "finding", "located"),
    [
        (ConfigFiles(MAIN), {"path": ("seed",)}, "main.yml:3:7: seed: is wrong"),
        (
            ConfigFiles(MAIN),
            {"path": ("tuner", "name"), "at_key": True},
            "main.yml:2:3: tuner.name: is wrong",
        ),
        # not in the file: the place is that of its section
        (ConfigFiles(MAIN), {"path": ("tuner", "class_args")}, "main.yml:2:3: tuner.class_args: is wrong"),
        (
            ConfigFiles(MAIN),
            {"path": ("seed",), "also": ("tuner", "name")},
            "main.yml:3:7: seed: is wrong tuner.name (line 2)",
        ),
        (ConfigFiles(), {"path": ("seed",), "also": ("a", "b"), "hint": "hint"}, "seed: is wrong a.b (hint)"),
        (
            ConfigFiles(MAIN, SPACE),
            {"path": ("search_space", "lr", "_type")},
            "space.yml:2:10: search_space.lr._type: is wrong",
        ),
    ],
)
def test_finding_gets_the_places_of_its_paths(
    places: ConfigFiles, finding: dict[str, Any], located: str
) -> None:
    (problem,) = places.problems([Finding(message="is wrong", **finding)])
    assert str(problem) == located


def test_problems_of_reading_a_space_file_are_under_search_space() -> None:
    space = parse_source("lr: 1\nlr: 2\n", "space.yml")
    (problem,) = ConfigFiles(MAIN, space).problems([])
    assert str(problem).startswith("space.yml:2:1: search_space.lr: duplicate key")


def test_problems_are_ordered_from_top_to_bottom_with_the_main_file_first_and_no_repetition() -> None:
    def problem(file: str | None, line: int | None) -> ConfigProblem:
        return ConfigProblem(file=file, line=line, column=1, path=(), message="is wrong")

    last, first, middle = problem("a.yml", 1), problem("main.yml", 2), problem("main.yml", 9)
    assert ConfigFiles(MAIN).ordered([last, middle, first, middle]) == [first, middle, last]
