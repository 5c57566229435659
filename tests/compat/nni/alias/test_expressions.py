"""NNI's `parameter_expressions`: what every draw satisfies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pitchpipe.compat.nni.alias import expressions as e

N = 200


def drawn(name: str, *values: Any) -> list[Any]:
    state = np.random.RandomState(0)
    return [getattr(e, name)(*values, state) for _ in range(N)]


def test_options_and_integers_are_those_of_the_space() -> None:
    assert set(drawn("choice", ["a", "b", None])) == {"a", "b", None}
    assert set(drawn("randint", 2, 5)) == {2, 3, 4}
    assert {type(value) for value in drawn("randint", 2, 5)} == {int}


@pytest.mark.parametrize("name", ["uniform", "loguniform"])
def test_numbers_lie_between_the_bounds(name: str) -> None:
    values = drawn(name, 1e-3, 1.0)
    assert all(1e-3 <= value <= 1.0 for value in values)
    below = sum(value < 0.0316 for value in values) / N  # the middle of the logarithms
    assert below < 0.1 if name == "uniform" else 0.35 < below < 0.65


def test_multiples_are_moved_between_the_bounds() -> None:
    assert set(drawn("quniform", 2, 10, 5)) == {2, 5, 10}
    assert set(drawn("qloguniform", 0.001, 1, 0.5)) == {0.001, 0.5, 1.0}


def test_normal_numbers_have_the_mean_and_the_spread() -> None:
    values = drawn("normal", 3.0, 0.5)
    assert (np.mean(values), np.std(values)) == (pytest.approx(3.0, abs=0.1), pytest.approx(0.5, abs=0.1))
    logs = np.log(drawn("lognormal", 3.0, 0.5))
    assert (np.mean(logs), np.std(logs)) == (pytest.approx(3.0, abs=0.1), pytest.approx(0.5, abs=0.1))


@pytest.mark.parametrize("name", ["qnormal", "qlognormal"])
def test_normal_multiples_are_multiples(name: str) -> None:
    assert all(value % 0.5 == 0 for value in drawn(name, 1.0, 2.0, 0.5))


@pytest.mark.parametrize(("name", "low"), [("uniform", 1.0), ("loguniform", 0.0), ("quniform", 1.0)])
def test_bounds_that_hold_nothing_are_an_error(name: str, low: float) -> None:
    with pytest.raises(ValueError, match="bound"):
        getattr(e, name)(low, 1.0, *((0.5,) if name == "quniform" else ()), np.random.RandomState(0))


def test_wide_lognormal_numbers_are_finite() -> None:
    state = np.random.RandomState(0)
    assert all(0 < e.lognormal(512, 128, state) < np.inf for _ in range(200))
    assert all(0 <= e.qlognormal(512, 300, 1e290, state) < np.inf for _ in range(200))
