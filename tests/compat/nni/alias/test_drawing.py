"""NNI's random parameters: what every draw satisfies, and points that come once, also in the form of evolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pitchpipe.compat.nni.alias import drawing
from pitchpipe.compat.nni.alias.drawing import Deduplicator, json2parameter, json2space, suggest
from pitchpipe.compat.nni.alias.hpo_utils import deformat_parameters, format_search_space
from pitchpipe.compat.nni.alias.utils import split_index
from pitchpipe.protocol import dumps
from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import NoMoreTrialError

N = 200
OP = {"_type": "choice", "_value": ["relu", "tanh"]}
FINITE = {
    "q": {"_type": "quniform", "_value": [0, 1, 0.6]},
    "layer": {"_type": "choice", "_value": [{"_name": "A", "op": OP}, {"_name": "B"}]},
    "n": {"_type": "qloguniform", "_value": [1, 3, 1]},
}
B = {"_name": "B", "x": {"_type": "uniform", "_value": [0, 1]}}
NESTED = {"layer": {"_type": "choice", "_value": [{"_name": "A", "op": OP}, B]}}


@pytest.mark.parametrize(("space", "most"), [(FINITE, 3 * 3 * 3), (NESTED, None)])
def test_each_point_comes_once_until_there_are_no_more(space: dict[str, Any], most: int | None) -> None:
    formatted, rng = format_search_space(space), np.random.default_rng(1)
    once, seen = Deduplicator(formatted), set[str]()
    for _ in range(most or 40):
        parameters = deformat_parameters(once(suggest(rng, formatted)), formatted)
        assert not SearchSpace.parse(space).validate(parameters)
        seen.add(dumps(parameters))
    assert len(seen) == (most or 40)
    if most is not None:
        with pytest.raises(NoMoreTrialError):
            once(suggest(rng, formatted))


def test_history_counts_as_seen() -> None:
    once = Deduplicator(format_search_space({"op": OP}))
    once.add_history({("op",): 0})
    assert once({("op",): 0}) == {("op",): 1}


def test_form_of_evolution_keeps_what_is_not_drawn_again() -> None:
    state = np.random.RandomState(1)
    places = json2space(NESTED)
    layer = "root[layer]-choice"
    assert places == [layer, f"{layer}[0][op]-choice", f"{layer}[1][x]-uniform"]
    points = [json2parameter(NESTED, {}, state) for _ in range(20)]
    assert {point["layer"]["_index"] for point in points} == {0, 1}
    assert all(not SearchSpace.parse(NESTED).validate(split_index(point)) for point in points)
    kept = [json2parameter(NESTED, dict.fromkeys(places, False), state, point) for point in points]
    assert kept == points


def drawn(name: str, *values: Any) -> list[Any]:
    state = np.random.RandomState(0)
    return [getattr(drawing, name)(*values, state) for _ in range(N)]


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
        getattr(drawing, name)(low, 1.0, *((0.5,) if name == "quniform" else ()), np.random.RandomState(0))


def test_wide_lognormal_numbers_are_finite() -> None:
    state = np.random.RandomState(0)
    assert all(0 < drawing.lognormal(512, 128, state) < np.inf for _ in range(200))
    assert all(0 <= drawing.qlognormal(512, 300, 1e290, state) < np.inf for _ in range(200))
