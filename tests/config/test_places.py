"""From a path of the config to file, line and column."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config.problems import ConfigProblem, Finding
from pitchpipe.config.source import Places, parse_source

MAIN = parse_source("tuner:\n  name: TPE\nseed: -1\n", "main.yml")
SPACE = parse_source("lr:\n  _type: unifrom\n", "space.yml")


@pytest.mark.parametrize(
    ("places", "finding", "located"),
    [
        (Places(MAIN), {"path": ("seed",)}, "main.yml:3:7: seed: is wrong"),
        (Places(MAIN), {"path": ("tuner", "name"), "at_key": True}, "main.yml:2:3: tuner.name: is wrong"),
        # not in the file: the place is that of its section
        (Places(MAIN), {"path": ("tuner", "class_args")}, "main.yml:2:3: tuner.class_args: is wrong"),
        (
            Places(MAIN),
            {"path": ("seed",), "also": ("tuner", "name")},
            "main.yml:3:7: seed: is wrong tuner.name (line 2)",
        ),
        (Places(), {"path": ("seed",), "also": ("a", "b"), "hint": "hint"}, "seed: is wrong a.b (hint)"),
        (
            Places(MAIN, SPACE),
            {"path": ("search_space", "lr", "_type")},
            "space.yml:2:10: search_space.lr._type: is wrong",
        ),
    ],
)
def test_finding_gets_the_places_of_its_paths(places: Places, finding: dict[str, Any], located: str) -> None:
    (problem,) = places.problems([Finding(message="is wrong", **finding)])
    assert str(problem) == located


def test_problems_of_reading_a_space_file_are_under_search_space() -> None:
    space = parse_source("lr: 1\nlr: 2\n", "space.yml")
    (problem,) = Places(MAIN, space).problems([])
    assert str(problem).startswith("space.yml:2:1: search_space.lr: duplicate key")


def test_problems_are_ordered_from_top_to_bottom_with_the_main_file_first_and_no_repetition() -> None:
    def problem(file: str | None, line: int | None) -> ConfigProblem:
        return ConfigProblem(file=file, line=line, column=1, path=(), message="is wrong")

    last, first, middle = problem("a.yml", 1), problem("main.yml", 2), problem("main.yml", 9)
    assert Places(MAIN).ordered([last, middle, first, middle]) == [first, middle, last]
