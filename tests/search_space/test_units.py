"""What the types draw, and where their values lie: against closed forms, with fixed seeds."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.search_space.units import ends_of

DRAWS = 4000
# Both limits are passed by one seed in a million; that of chi-square after Wilson and Hilferty.
KS_LIMIT = 2.7 / math.sqrt(DRAWS)
SIGMAS = 4.75


def draw(type_name: str, values: list[Any], count: int = DRAWS) -> list[Any]:
    space = SearchSpace.parse({"x": {"_type": type_name, "_value": values}})
    rng = np.random.default_rng(20)
    return [space.sample(rng)["x"] for _ in range(count)]


def ks_distance(sample: list[float], cdf: Callable[[float], float]) -> float:
    units = sorted(map(cdf, sample))
    n = len(units)
    return max(max((i + 1) / n - u, u - i / n) for i, u in enumerate(units))


def chi_square_limit(degrees: int) -> float:
    spread = 2 / (9 * degrees)
    return degrees * (1 - spread + SIGMAS * math.sqrt(spread)) ** 3


@pytest.mark.parametrize(
    ("type_name", "values", "cdf"),
    [
        ("uniform", [-2, 6], lambda x: (x + 2) / 8),
        ("loguniform", [1e-5, 10], lambda x: math.log(x / 1e-5) / math.log(1e6)),
        ("normal", [3, 2], NormalDist(3, 2).cdf),
        ("lognormal", [1, 0.5], lambda x: NormalDist(1, 0.5).cdf(math.log(x))),
    ],
)
def test_a_continuous_type_follows_its_distribution(
    type_name: str, values: list[Any], cdf: Callable[[float], float]
) -> None:
    sample = draw(type_name, values)
    assert {type(x) for x in sample} == {float}
    assert ks_distance(sample, cdf) < KS_LIMIT


@pytest.mark.parametrize(
    ("type_name", "values", "expected"),
    [
        ("choice", ["a", None, 3.5], {"a": 1 / 3, None: 1 / 3, 3.5: 1 / 3}),
        ("randint", [-1, 3], {-1: 0.25, 0: 0.25, 1: 0.25, 2: 0.25}),
        ("lograndint", [1, 4], {1: math.log(2, 4), 2: math.log(1.5, 4), 3: math.log(4 / 3, 4)}),
        ("quniform", [2, 10, 5], {2.0: 0.5 / 8, 5.0: 5 / 8, 10.0: 2.5 / 8}),
        ("quniform", [0, 3, 1], {0.0: 1 / 6, 1.0: 1 / 3, 2.0: 1 / 3, 3.0: 1 / 6}),
        (
            "qloguniform",
            [1, 4, 1],
            {
                1.0: math.log(1.5, 4),
                2.0: math.log(2.5 / 1.5, 4),
                3.0: math.log(3.5 / 2.5, 4),
                4.0: math.log(4 / 3.5, 4),
            },
        ),
    ],
)
def test_a_discrete_type_follows_its_distribution(
    type_name: str, values: list[Any], expected: dict[Any, float]
) -> None:
    counts = Counter(draw(type_name, values))
    assert counts.keys() == expected.keys()
    chi_square = sum((counts[x] - DRAWS * p) ** 2 / (DRAWS * p) for x, p in expected.items())
    assert chi_square < chi_square_limit(len(expected) - 1)


@pytest.mark.parametrize(
    ("type_name", "cdf"),
    [
        ("qnormal", NormalDist(1, 0.5).cdf),
        ("qlognormal", lambda x: NormalDist(1, 0.5).cdf(math.log(x)) if x > 0 else 0.0),
    ],
)
def test_a_rounded_normal_type_follows_its_distribution(
    type_name: str, cdf: Callable[[float], float]
) -> None:
    counts = Counter(draw(type_name, [1, 0.5, 0.5]))
    assert all(x == round(x / 0.5) * 0.5 for x in counts)
    expected = {x: DRAWS * (cdf(x + 0.25) - cdf(x - 0.25)) for x in counts}
    common = [x for x in counts if expected[x] > 10]
    chi_square = sum((counts[x] - expected[x]) ** 2 / expected[x] for x in common)
    assert chi_square < chi_square_limit(len(common) - 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2, 10, 5], [2.0, 5.0, 10.0]),
        ([0.001, 1, 0.1], [0.001, *(k * 0.1 for k in range(1, 11))]),
        ([1.2, 1.4, 1], [1.2]),
        ([1, 1, 3], [1.0]),
    ],
)
def test_rounded_values_are_clipped_to_the_bounds_as_nni_does(
    values: list[Any], expected: list[float]
) -> None:
    for type_name in ("quniform", "qloguniform"):
        drawn = sorted(set(draw(type_name, values)))
        assert drawn == expected
        assert {type(x) for x in drawn} == {float}


@pytest.mark.parametrize(
    ("type_name", "values", "value", "unit"),
    [
        ("choice", ["a", "b", "c", "d"], "b", 0.375),
        ("choice", ["a", True, 1, {"k": [1]}], {"k": [1.0]}, 0.875),
        ("choice", ["a", True, 1, 2], 1, 0.625),
        ("randint", [10, 14], 13, 0.875),
        ("randint", [10, 14], 13.0, 0.875),
        ("lograndint", [1, 16], 1, 0.125),
        ("lograndint", [1, 16], 15, 0.5 * (math.log(15, 16) + 1)),
        ("uniform", [-2, 6], 0, 0.25),
        ("uniform", [3, 3], 3, 0.5),
        ("loguniform", [0.01, 100], 0.1, 0.25),
        ("normal", [5, 2], 5, 0.5),
        ("normal", [0, 1], 1.959963984540054, 0.975),
        ("lognormal", [0, 1], 1, 0.5),
        ("quniform", [2, 10, 5], 2, 0.03125),
        ("quniform", [2, 10, 5], 5, 0.375),
        ("quniform", [2, 10, 5], 10, 0.84375),
        ("qnormal", [0, 1, 2], 0, 0.5),
        ("qlognormal", [0, 1, 2], 0, 0.25),
    ],
)
def test_a_value_has_this_unit(type_name: str, values: list[Any], value: Any, unit: float) -> None:
    space = SearchSpace.parse({"x": {"_type": type_name, "_value": values}})
    assert space.encode({"x": value})[0] == pytest.approx(unit, rel=1e-12)


@pytest.mark.parametrize(
    ("type_name", "values", "value"),
    [
        ("choice", ["a", 1], True),
        ("choice", ["a", True], 1),
        ("choice", ["a", [1]], [1, 2]),
        ("choice", ["a"], {1: 2}),
        ("randint", [1, 5], 5),
        ("lograndint", [1, 5], 5),
        ("lograndint", [1, 5], 1.5),
        ("randint", [1, 5], 0),
        ("randint", [1, 5], None),
        ("uniform", [0, 1], 1.001),
        ("loguniform", [1e-5, 1], 0),
        ("lognormal", [0, 1], 0),
        ("normal", [0, 1], math.inf),
        ("quniform", [2, 10, 5], 4),
        ("quniform", [0.5, 2.5, 1], 0.5),
        ("qlognormal", [0, 1, 2], -2),
        ("qnormal", [0, 1, 2], 1),
    ],
)
def test_what_is_not_a_value_is_refused(type_name: str, values: list[Any], value: Any) -> None:
    space = SearchSpace.parse({"x": {"_type": type_name, "_value": values}})
    assert [problem.path for problem in space.validate({"x": value})] == [("x",)]


def test_numpy_scalars_are_values() -> None:
    space = SearchSpace.parse(
        {"a": {"_type": "uniform", "_value": [0, 1]}, "b": {"_type": "randint", "_value": [0, 4]}}
    )
    assert space.encode({"a": np.float32(0.5), "b": np.int64(1)}).tolist() == [0.5, 0.375]


@pytest.mark.parametrize("type_name", ["quniform", "qloguniform"])
@pytest.mark.parametrize("values", [[1, 2**40, 1], [0.3, 7.7, 0.1], [1e-9, 1e-3, 1e-9], [5, 1e12, 7]])
def test_every_step_of_a_fine_grid_has_a_unit_of_its_own(type_name: str, values: list[Any]) -> None:
    space = SearchSpace.parse({"x": {"_type": type_name, "_value": values}})
    for point in (space.decode([u]) for u in np.linspace(0, 1, 300)):
        assert space.decode(space.encode(point)) == point


def test_a_wide_randint_goes_there_and_back() -> None:
    space = SearchSpace.parse({"x": {"_type": "randint", "_value": [-(2**49), 2**49]}})
    for x in (-(2**49), -1, 0, 12345678901, 2**49 - 1):
        assert space.decode(space.encode({"x": x})) == {"x": x}


@pytest.mark.parametrize(
    ("type_name", "values", "is_bent"),
    [
        ("uniform", [0, 1000], True),
        ("uniform", [1e-6, 1], True),  # nobody writes 1e-6 of a share
        ("uniform", [0, 1], False),
        ("uniform", [0, 3], False),
        ("uniform", [0, 0.1], False),
        ("uniform", [0.01, 1], False),
        ("uniform", [100, 1000], False),
        ("uniform", [-1, 1000], False),
        ("quniform", [1, 500, 1], True),
        ("quniform", [0, 1000, 100], False),
        ("randint", [1, 200], True),
        ("randint", [1, 20], False),
        ("loguniform", [1e-6, 1], False),
        ("qloguniform", [1, 1000, 1], False),
        ("normal", [0, 1], False),
    ],
)
def test_a_wide_uniform_range_is_bent(type_name: str, values: list[Any], is_bent: bool) -> None:
    specification = {"x": {"_type": type_name, "_value": values}}
    plain, bent = SearchSpace.parse(specification), SearchSpace.parse(specification, bend=5.0)
    units = np.linspace(0, 1, 101)
    [found, straight] = ([space.decode([u])["x"] for u in units] for space in (bent, plain))
    assert found == sorted(found)
    assert (found != straight) == is_bent
    assert (bent == plain) is False
    assert found[0] == straight[0]
    assert found[-1] == pytest.approx(straight[-1])
    for x in found:
        assert bent.decode(bent.encode({"x": x}))["x"] == pytest.approx(x, rel=1e-9)
    if is_bent:
        # The middle of the cube is at 1 / (1 + exp(bend / 2)) of the range.
        assert found[50] == pytest.approx(straight[-1] / (1 + math.exp(2.5)), rel=0.1)


def test_a_bent_space_keeps_its_bend_when_it_is_pickled() -> None:
    space = SearchSpace.parse({"x": {"_type": "uniform", "_value": [0, 1000]}}, bend=5.0)
    again = pickle.loads(pickle.dumps(space))
    assert again == space
    assert again.decode([0.5]) == space.decode([0.5])


@pytest.mark.parametrize("type_name", ["normal", "lognormal"])
def test_the_ends_of_a_normal_type_are_finite(type_name: str) -> None:
    space = SearchSpace.parse({"x": {"_type": type_name, "_value": [0, 1e3]}})
    low, high = space.decode([0.0])["x"], space.decode([1.0])["x"]
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert space.validate({"x": low}) == space.validate({"x": high}) == []


@pytest.mark.parametrize(
    ("type_name", "values", "low", "high"),
    [
        ("uniform", [2, 5], 2.0, 5.0),
        ("lograndint", [1, 9], 1.0, 9.0),
        ("normal", [1, 2], -5.0, 7.0),
        ("qlognormal", [0, 1, 0.5], math.exp(-3), math.exp(3)),
        ("lognormal", [512, 128], math.exp(128), math.exp(700)),
        ("lognormal", [-600, 1e5], math.exp(-700), math.exp(700)),
    ],
)
def test_the_ends_of_a_range_are_finite(type_name: str, values: list[Any], low: float, high: float) -> None:
    (parameter,) = SearchSpace.parse({"x": {"_type": type_name, "_value": values}}).parameters
    assert ends_of(parameter, 3) == pytest.approx((low, high))
