"""Problems as users read them."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config.problems import ConfigError, ConfigProblem, did_you_mean, dotted, nearest, shown


@pytest.mark.parametrize(
    ("file", "line", "column", "location"),
    [("a.yml", 12, 3, "a.yml:12:3"), ("a.yml", None, None, "a.yml"), (None, None, None, "")],
)
def test_location_has_the_parts_that_are_known(
    file: str | None, line: int | None, column: int | None, location: str
) -> None:
    assert (
        ConfigProblem(file=file, line=line, column=column, path=(), message="is wrong").location == location
    )


def test_problem_without_place_path_and_hint_is_its_message() -> None:
    assert str(ConfigProblem(file=None, line=None, column=None, path=(), message="is empty")) == "is empty"


def test_problem_has_place_path_message_and_hint() -> None:
    problem = ConfigProblem(
        file="a.yml", line=1, column=2, path=("tuner", "name"), message="is unknown", hint="did you mean TPE?"
    )
    assert str(problem) == "a.yml:1:2: tuner.name: is unknown (did you mean TPE?)"


def test_error_has_one_line_for_each_problem() -> None:
    problems = [
        ConfigProblem(file=None, line=None, column=None, path=(name,), message="is wrong") for name in "ab"
    ]
    error = ConfigError(problems)
    assert (str(error), error.problems) == ("a: is wrong\nb: is wrong", problems)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        ("é", '"é"'),
        ({"a": [1]}, '{"a": [1]}'),
        ({1, 2}, "{1, 2}"),
        ("x" * 58, '"' + "x" * 58 + '"'),
        ("x" * 59, '"' + "x" * 56 + "..."),
    ],
)
def test_value_is_shown_as_json_or_else_as_python_and_shortened(value: Any, text: str) -> None:
    assert shown(value) == text


def test_value_that_contains_itself_is_shown() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert shown(loop) == "[[...]]"


def test_path_has_dots_for_keys_and_brackets_for_indices() -> None:
    assert [dotted(path) for path in [(), ("a",), ("a", 0, "b"), (0,)]] == ["", "a", "a[0].b", "[0]"]


def test_nearest_word_ignores_case_and_is_none_if_no_word_is_near() -> None:
    assert nearest("TPEE", ["Random", "tpe"]) == "tpe"
    assert nearest("tpe", ["TPE"]) == "TPE"
    assert nearest("xyz", ["Random", "TPE"]) is None


def test_hint_names_the_nearest_word_if_there_is_one() -> None:
    assert did_you_mean("maximise", ["minimize", "maximize"]) == "did you mean maximize?"
    assert did_you_mean("xyz", ["minimize"]) == ""
    assert did_you_mean(3, ["3"]) == ""
