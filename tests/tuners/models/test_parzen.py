"""The densities of TPE are densities, and their samples follow them; the history ranks as sorting does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners.base.embedding import Layout
from pitchpipe.tuners.base.history import History
from pitchpipe.tuners.models.parzen import Mixture, ParzenHistory, features_of

NESTED: dict[str, Any] = {
    "o": {
        "_type": "choice",
        "_value": [
            {"_name": "A", "x": {"_type": "uniform", "_value": [0, 1]}},
            {"_name": "B", "c": {"_type": "choice", "_value": [1, 2, 3]}},
            {"_name": "C"},
        ],
    },
    "y": {"_type": "uniform", "_value": [0, 1]},
}


def mixture(
    space: dict[str, Any], points: list[dict[str, Any]], bandwidth: float = 0.1, flip: float = 0.3
) -> Mixture:
    model = SearchSpace.parse(space)
    layout = Layout.of(model)
    units = np.array([model.encode(point) for point in points]).reshape(len(points), layout.dimension)
    widths = np.full(len(layout.numeric), bandwidth)
    weights = np.arange(1.0, len(points) + 2)
    features = features_of(layout, units, widths)
    return Mixture(
        layout=layout,
        features=features,
        codes=layout.codes(units),
        weights=weights / weights.sum(),
        bandwidth=widths,
        flip=flip,
    )


def uniform_points(layout: Layout, count: int) -> Any:
    return layout.deactivate(np.random.default_rng(0).random((count, layout.dimension)))


POINTS = [
    {"o": {"_name": "A", "x": 0.02}, "y": 0.5},
    {"o": {"_name": "B", "c": 2}, "y": 0.97},
    {"o": {"_name": "A", "x": 0.7}, "y": 0.1},
]


def test_the_density_integrates_to_one() -> None:
    model = mixture(NESTED, POINTS)
    units = uniform_points(model.layout, 200_000)
    # Relative to the sampling distribution, of which these points are a sample.
    assert np.exp(model.log_density(units, model.layout.codes(units))).mean() == pytest.approx(1, abs=0.02)


def test_samples_follow_the_density() -> None:
    model = mixture(NESTED, POINTS)
    drawn = model.sample(np.random.default_rng(1), 100_000)
    uniform = uniform_points(model.layout, 100_000)
    density = np.exp(model.log_density(uniform, model.layout.codes(uniform)))
    for column in range(model.layout.dimension):
        expected = np.nanmean(np.where(np.isnan(uniform[:, column]), 0, uniform[:, column] * density))
        assert np.nan_to_num(drawn[:, column]).mean() == pytest.approx(expected, abs=0.02)


def test_a_density_of_nothing_is_the_sampling_distribution() -> None:
    model = mixture(NESTED, [])
    units = model.sample(np.random.default_rng(0), 50)
    assert model.log_density(units, model.layout.codes(units)) == pytest.approx(np.zeros(50))


def test_a_kernel_by_hand() -> None:
    model = mixture({"x": {"_type": "uniform", "_value": [0, 1]}}, [{"x": 0.05}], bandwidth=0.1)
    inside = 0.5 * (math.erf(0.95 / 0.1 / math.sqrt(2)) + math.erf(0.05 / 0.1 / math.sqrt(2)))
    kernel = math.exp(-0.5 * ((0.2 - 0.05) / 0.1) ** 2) / (0.1 * math.sqrt(2 * math.pi) * inside)
    expected = math.log(1 / 3 * kernel + 2 / 3)
    assert model.log_density(np.array([[0.2]]), np.empty((1, 0), int)) == pytest.approx([expected])


def test_deactivation_reaches_the_third_level() -> None:
    leaf = {"_type": "uniform", "_value": [0, 1]}
    for _ in range(3):
        leaf = {"_type": "choice", "_value": [{"_name": "on", "next": leaf}, {"_name": "off"}]}
    space = SearchSpace.parse({"top": leaf})
    units = uniform_points(Layout.of(space), 500)
    assert [list(np.isnan(row)) for row in units] == [list(~space.active(row)) for row in units]


@given(
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from([-1.0, 0.0, 2.5, math.inf])), max_size=40),
    st.integers(1, 9),
)
def test_the_history_ranks_as_sorting_does(events: list[tuple[int, float]], every: int) -> None:
    history = History(Layout.of(SearchSpace.parse({"x": {"_type": "uniform", "_value": [0, 1]}})))
    known: dict[int, float] = {}
    for _ in range(8):
        history.add(np.array([0.5]))
    for i, (row, loss) in enumerate(events):
        history.settle(row, loss)
        known[row] = loss
        assert (history.finished, history.loss(row)) == (len(known), loss)
        if i % every == 0:  # what is ranked already moves; what is not has one place all the same
            assert len(history.ranked) == len(known)
    assert history.losses.tolist() == sorted(known.values())
    assert [known[row] for row in history.ranked.tolist()] == sorted(known.values())
    assert sorted(history.ranked.tolist()) == sorted(known)
    assert history.successes == sum(loss < math.inf for loss in known.values())


def test_equal_losses_rank_in_order_of_arrival() -> None:
    history = History(Layout.of(SearchSpace.parse({"x": {"_type": "uniform", "_value": [0, 1]}})))
    for loss in (1.0, 0.0, 1.0, 0.0):
        history.settle(history.add(np.array([0.5])), loss)
    assert history.ranked.tolist() == [1, 3, 0, 2]


def test_kept_features_are_those_of_the_bandwidth_asked_for() -> None:
    layout = Layout.of(SearchSpace.parse(NESTED))
    history = ParzenHistory(layout)
    units = uniform_points(layout, 150)
    rows = np.array([history.add(row) for row in units])
    for width in (0.5, 0.1, 0.1, 0.03):
        bandwidth = np.full(len(layout.numeric), width)
        assert history.features(rows, bandwidth) == pytest.approx(features_of(layout, units, bandwidth))
