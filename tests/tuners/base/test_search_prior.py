"""A prior draws suggestions to where good points are expected, fades as results arrive, and costs little if wrong."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest

from pitchpipe import tuners
from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners.base.search_prior import SearchPrior, rank_agreement

from ..searches import search, started

SPACE: dict[str, Any] = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
    "units": {"_type": "randint", "_value": [0, 10]},
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "conv", "kernel": {"_type": "choice", "_value": [3, 5]}},
            {"_name": "pool", "kernel": {"_type": "randint", "_value": [2, 9]}},
            {"_name": "none"},
        ],
    },
}
PRIORS: dict[str, Any] = {
    "lr": {"centre": 0.01, "confidence": 0.5},
    "layer": {"centre": "pool", "confidence": 0.5},
    "layer.kernel": {"centre": 8, "confidence": 0.75},
}


def space() -> SearchSpace:
    return SearchSpace.parse(SPACE)


def prior(**priors: Any) -> SearchPrior:
    return SearchPrior.of(space(), priors)


def uniform(count: int) -> Any:
    return np.random.default_rng(0).random((count, len(space().parameters)))


@pytest.mark.parametrize("confidence", [0.0, 0.25, 0.5, 1.0])
def test_density_is_one_on_average(confidence: float) -> None:
    units = uniform(200_000)
    for name, centre in (("lr", 0.001), ("units", 9), ("layer", "conv")):
        one = prior(**{name: {"centre": centre, "confidence": confidence}})
        assert np.exp(one.log_density(units)).mean() == pytest.approx(1.0, abs=0.02)


def test_density_is_highest_at_the_centre_and_higher_with_more_confidence() -> None:
    points = [{"lr": lr, "units": 1, "layer": {"_name": "none"}} for lr in (0.01, 0.03, 0.9)]
    units = np.array([space().encode(point) for point in points])
    peaks = []
    for confidence in (0.25, 0.5, 0.75):
        densities = prior(lr={"centre": 0.01, "confidence": confidence}).log_density(units)
        assert list(densities) == sorted(densities, reverse=True)
        peaks.append(densities[0])
    assert peaks == sorted(peaks)


def test_drawn_points_follow_the_density() -> None:
    drawn = prior(**PRIORS).drawn(uniform(1500))
    points = [space().decode(units) for units in drawn]
    assert statistics.median(point["lr"] for point in points) == pytest.approx(0.01, rel=0.1)
    share = statistics.mean(point["layer"]["_name"] == "pool" for point in points)
    assert share == pytest.approx(1 / 3 + 0.45 * 2 / 3, abs=0.03)
    kernels = [point["layer"]["kernel"] for point in points if point["layer"]["_name"] == "pool"]
    assert statistics.median(kernels) >= 7
    assert statistics.mean(point["units"] for point in points) == pytest.approx(4.5, abs=0.2)


def test_parameters_and_values_that_the_space_lacks_are_left_out() -> None:
    assert not prior(other={"centre": 1, "confidence": 0.5}, lr={"centre": 7, "confidence": 0.5})
    # 3 is a kernel of both branches, 8 of one only.
    assert len(prior(**{"layer.kernel": {"centre": 3, "confidence": 0.5}}).densities) == 2
    assert len(prior(**{"layer.kernel": {"centre": 8, "confidence": 0.5}}).densities) == 1


def test_weight_fades_and_vanishes_where_results_disagree() -> None:
    one = prior(lr={"centre": 0.01, "confidence": 0.5})
    for sign, is_right in ((-1, True), (1, False)):
        weights = []
        for count in (8, 20, 100, 400):
            units = uniform(count)
            losses = sign * one.log_density(units)
            order = np.argsort(losses)
            weights.append(one.weight(units[order], losses[order]))
        assert weights == sorted(weights, reverse=True)
        assert weights[0] > 0.5 if is_right else weights[0] < 0.1
        assert 0 < weights[-1] < 0.05 if is_right else weights[-1] == 0
    assert prior().weight(uniform(9), np.arange(9.0)) == 0


def test_prior_is_dropped_once_8_results_rank_against_it() -> None:
    one = prior(lr={"centre": 0.01, "confidence": 0.5})
    for count, is_used in ((7, True), (8, False)):
        units = uniform(count)
        orders = (np.random.default_rng(seed).permutation(count) for seed in range(100))
        against = next(
            order
            for order in orders
            if -0.3 < rank_agreement(-one.log_density(units[order]), np.arange(float(count))) < 0
        )
        assert (one.weight(units[against], np.arange(float(count))) > 0) == is_used
    assert one.weight(uniform(20), np.zeros(20)) > 0  # equal results say nothing


def test_failures_are_compared_too() -> None:
    one = prior(lr={"centre": 0.01, "confidence": 0.5})
    units = uniform(20)
    order = np.argsort(-one.log_density(units))
    losses = np.array([0.0] * 10 + [np.inf] * 10)
    assert one.weight(units[order], losses) > one.weight(units[order[::-1]], losses) == 0


BOWL: dict[str, Any] = {f"x{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(6)}


def bowl(point: dict[str, float]) -> float:
    return sum((value - 0.8) ** 2 for value in point.values())


def best_after(count: int, name: str, centre: float | None, seed: int) -> float:
    priors = None if centre is None else {x: {"centre": centre, "confidence": 0.75} for x in BOWL}
    return min(search(started(tuners.create(name, seed=seed), BOWL, priors=priors), bowl, count))


@pytest.mark.parametrize("name", ["Auto", "TPE"])
def test_first_suggestion_is_the_centre(name: str) -> None:
    tuner = started(tuners.create(name, seed=0), SPACE, priors=PRIORS)
    first = tuner.generate_parameters(0)
    assert (first["lr"], first["layer"]) == (pytest.approx(0.01), {"_name": "pool", "kernel": 8})


@pytest.mark.parametrize(("name", "count", "seeds"), [("Auto", 20, 2), ("TPE", 30, 3)])
def test_good_prior_helps_and_a_wrong_one_costs_little(name: str, count: int, seeds: int) -> None:
    plain, good, wrong = (
        statistics.mean(best_after(count, name, centre, seed) for seed in range(seeds))
        for centre in (None, 0.75, 0.1)
    )
    assert good < 0.5 * plain
    assert wrong < 2 * plain


@pytest.mark.parametrize("name", ["Auto", "TPE"])
def test_prior_of_nothing_changes_nothing(name: str) -> None:
    strange = {"other": {"centre": 1, "confidence": 0.5}}
    plain, given = (started(tuners.create(name, seed=3), BOWL, priors=priors) for priors in (None, strange))
    assert search(given, bowl, 15) == search(plain, bowl, 15)
