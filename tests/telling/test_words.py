"""Parameters and moments as people read them; the simple cases are doctests, others in test_sentences.txt."""

from __future__ import annotations

import json
import time

import pytest

from pitchpipe.telling.trial_story import reason_text, repeat_text, repeats_text, value_text, values_text
from pitchpipe.telling.words import moment_text, number_text, option_text, parameters_text

from ..stored import a_row, some_repeats


def test_values_of_a_family_have_their_margins() -> None:
    family = a_row(3, {"ms": 2.5}, repeats=some_repeats(2, 3, interval={"ms": 0.5}))
    assert value_text(family, "ms") == values_text(family, ["ms"]) == "2.5 ± 0.5"
    assert values_text(a_row(3, {"ms": 2.5, "mb": 9.0}), ["ms", "mb"]) == "ms 2.5, mb 9"


@pytest.mark.parametrize(
    ("count", "of", "text"),
    [(5, 5, "mean of 5 repeats"), (2, 5, "mean of 2 of 5 repeats"), (1, 5, "1 of 5 repeats")],
)
def test_repeats_are_counted(count: int, of: int, text: str) -> None:
    assert repeats_text(a_row(0, repeats=some_repeats(count, of))) == text


def test_trial_names_its_family() -> None:
    assert (repeat_text(a_row(4, family=3, repeat=1)), repeat_text(a_row(4))) == ("1 of family 3", "")
    assert repeats_text(a_row(4)) == ""


def test_reason_of_a_family_counts_repeats_without_a_result() -> None:
    repeats = some_repeats(2, 3, end="complete")
    family = a_row(3, {"ms": 25.0}, family_end="complete", repeats=repeats)
    assert reason_text(family, {"ms": "<= 20"}) == "violates ms <= 20; 1 repeat has no result"


def test_moment_is_in_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    assert moment_text(0.0) == "1970-01-01 02:00:00"
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("text", ["true", "1", "1.0", "null", "NaN", "[1]", '{"a": 1}', '"a"', ""])
def test_text_that_reads_as_another_value_is_in_quotes(text: str) -> None:
    shown = json.dumps(text)
    assert (number_text(text), option_text(text)) == (shown, shown)
    assert parameters_text({"x": text, "s": {"_name": text}}) == f"x={shown} s={shown}"


@pytest.mark.parametrize("text", ["relu", "True", "none", "yes", ".5", "1e", "C:\\new", "größer"])
def test_other_text_is_bare(text: str) -> None:
    assert (number_text(text), parameters_text({"x": text})) == (text, f"x={text}")
