"""By how much the best trials are better than the defaults; what is said of it is in test_sentences.txt."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pitchpipe.store.reading import Goal
from pitchpipe.telling.best_lines import gain_text, gains_over_defaults

from ..stored import a_row, a_summary

ONE = [Goal("default", "maximize")]
TWO = [Goal("loss", "minimize"), Goal("f1", "maximize")]
LIMITED = {"outcome_limits": {"ms": "<= 20"}}


def gains(defaults: Any, *best: Any, objectives: Any = ONE, status: str = "SUCCEEDED", **more: Any) -> Any:
    rows = [a_row(number, values, status=status) for number, values in enumerate((defaults, *best))]
    return gains_over_defaults(a_summary(*rows[1:], defaults=rows[0], objectives=objectives, **more))


def test_gain_is_that_of_the_best_in_every_objective() -> None:
    assert gains({"default": 0.8}, {"default": 0.9}) == {"default": pytest.approx(0.1)}
    assert gains({"default": 0.8}, {"default": 0.8}) == {"default": 0.0}
    front = [{"loss": 0.1, "f1": 0.6}, {"loss": 0.4, "f1": 0.9}, {"loss": 0.7, "f1": 0.95}]
    found = gains({"loss": 0.5, "f1": 0.5}, *front, objectives=TWO)
    assert found == {"loss": pytest.approx(0.4), "f1": pytest.approx(0.45)}
    allowed = gains({"default": 0.8, "ms": 20.0}, {"default": 0.9, "ms": 9.0}, **LIMITED)
    assert allowed == {"default": pytest.approx(0.1)}


@pytest.mark.parametrize(
    ("base", "best", "gain"),
    [
        (math.inf, math.inf, 0.0),
        (-math.inf, 1.0, math.inf),
        (-1e308, 1e308, math.inf),
        (5e-324, 1.0, 1.0),
        (7e198, 8e307, 8e307),
    ],
)
def test_gain_over_extreme_defaults(base: float, best: float, gain: float) -> None:
    assert gains({"default": base}, {"default": best}) == {"default": gain}
    rows = [a_row(number, {"default": value}) for number, value in enumerate((base, best))]
    said = gain_text(a_summary(*rows[1:], defaults=rows[0], objectives=ONE))
    assert "nan" not in said
    assert "inf %" not in said
    assert said.startswith("no trial is better" if not gain else f"{gain:g}")


def test_nothing_is_compared_with_defaults_without_a_result_or_beyond_a_limit() -> None:
    assert gains({}, {"default": 0.9}, status="FAILED") is None
    assert gains({"default": 0.8, "ms": 30.0}, {"default": 0.7, "ms": 9.0}, **LIMITED) is None
    assert gain_text(a_summary()) == ""
