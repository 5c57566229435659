"""Problems as users read them."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config.problems import ConfigError, ConfigProblem, did_you_mean, nearest

NOWHERE: dict[str, Any] = {"file": None, "line": None, "column": None, "path": ()}


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({}, "is wrong"),
        ({"file": "a.yml"}, "a.yml: is wrong"),
        ({"file": "a.yml", "line": 12, "column": 3, "path": ("a", "b")}, "a.yml:12:3: a.b: is wrong"),
        ({"path": ("a",), "hint": "did you mean b?"}, "a: is wrong (did you mean b?)"),
    ],
)
def test_problem_has_the_parts_that_are_known(known: dict[str, Any], text: str) -> None:
    assert str(ConfigProblem(**{**NOWHERE, **known}, message="is wrong")) == text


def test_error_has_one_line_for_each_problem() -> None:
    problems = [ConfigProblem(**{**NOWHERE, "path": (name,)}, message="is wrong") for name in "ab"]
    error = ConfigError(problems)
    assert (str(error), error.problems) == ("a: is wrong\nb: is wrong", problems)
    assert isinstance(error, ValueError)


def test_nearest_word_ignores_case_and_is_none_if_no_word_is_near() -> None:
    assert nearest("TPEE", ["Random", "tpe"]) == "tpe"
    assert nearest("tpe", ["TPE"]) == "TPE"
    assert nearest("xyz", ["Random", "TPE"]) is None


def test_hint_names_the_nearest_word_if_there_is_one() -> None:
    assert did_you_mean("maximise", ["minimize", "maximize"]) == "did you mean maximize?"
    assert did_you_mean("xyz", ["minimize"]) == ""
    assert did_you_mean(3, ["3"]) == ""
