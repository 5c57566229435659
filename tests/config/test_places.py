"""From a path of the config to file, line and column."""

from __future__ import annotations

from pitchpipe.config.places import Places
from pitchpipe.config.problems import ConfigProblem, Finding
from pitchpipe.config.source import parse_source

MAIN = parse_source("tuner:\n  name: TPE\nseed: -1\n", "main.yml")
SPACE = parse_source("lr:\n  _type: unifrom\n", "space.yml")


def located(places: Places, *findings: Finding) -> list[str]:
    return [str(problem) for problem in places.problems(findings)]


def test_a_finding_gets_the_place_of_its_value() -> None:
    assert located(Places(MAIN), Finding(path=("seed",), message="is wrong")) == [
        "main.yml:3:7: seed: is wrong"
    ]


def test_a_finding_at_a_key_gets_the_place_of_the_key() -> None:
    finding = Finding(path=("tuner", "name"), message="is wrong", at_key=True)
    assert located(Places(MAIN), finding) == ["main.yml:2:3: tuner.name: is wrong"]


def test_a_path_that_is_not_in_the_file_gets_the_place_of_its_section() -> None:
    assert located(Places(MAIN), Finding(path=("tuner", "class_args"), message="is wrong")) == [
        "main.yml:2:3: tuner.class_args: is wrong"
    ]


def test_a_second_place_is_named_with_its_line() -> None:
    finding = Finding(path=("seed",), message="contradicts", also=("tuner", "name"))
    assert located(Places(MAIN), finding) == ["main.yml:3:7: seed: contradicts tuner.name (line 2)"]


def test_python_data_has_no_places() -> None:
    finding = Finding(path=("seed",), message="contradicts", hint="hint", also=("tuner", "name"))
    assert located(Places(), finding) == ["seed: contradicts tuner.name (hint)"]


def test_a_search_space_in_its_own_file_is_located_there() -> None:
    finding = Finding(path=("search_space", "lr", "_type"), message="is unknown")
    assert located(Places(MAIN, SPACE), finding) == ["space.yml:2:10: search_space.lr._type: is unknown"]


def test_problems_of_reading_a_space_file_are_under_search_space() -> None:
    space = parse_source("lr: 1\nlr: 2\n", "space.yml")
    assert located(Places(MAIN, space)) == [
        "space.yml:2:1: search_space.lr: duplicate key: on line 1 and again on line 2"
    ]


def test_problems_are_ordered_from_top_to_bottom_with_the_main_file_first_and_no_repetition() -> None:
    def problem(file: str | None, line: int | None) -> ConfigProblem:
        return ConfigProblem(file=file, line=line, column=1, path=(), message="is wrong")

    last, first, middle = problem("a.yml", 1), problem("main.yml", 2), problem("main.yml", 9)
    assert Places(MAIN).ordered([last, middle, first, middle]) == [first, middle, last]
