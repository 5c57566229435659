"""Quasi-random search: it conforms, and its points fill the space evenly."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pytest

from pitchpipe.testing import DIFFERENT, SPACES
from pitchpipe.tuners import QMCTuner, RandomTuner, Tuner

from ..lazy import Lazy
from .searches import suite

qmc = Lazy("scipy.stats.qmc")
SQUARE = {name: {"_type": "uniform", "_value": [0, 1]} for name in "xy"}


TestSobol = suite(
    lambda seed, _: QMCTuner(seed=seed),
    lambda seed, mode: QMCTuner("halton", seed=seed, optimize_mode=mode),
)
TestLatinHypercubes = suite(
    lambda seed, mode: QMCTuner("lhs", block=7, seed=seed, optimize_mode=mode),
    spaces={name: SPACES[name] for name in DIFFERENT},  # Sobol takes the others
    many_results=500,
)


def points(tuner: Tuner, count: int) -> np.ndarray:
    tuner.update_search_space(SQUARE)
    return np.array([[p["x"], p["y"]] for p in tuner.generate_multiple_parameters(list(range(count)))])


@pytest.mark.parametrize("sequence", ["sobol", "halton"])
@pytest.mark.parametrize("scramble", [True, False])
def test_it_fills_the_space_more_evenly_than_random_points(sequence: str, scramble: bool) -> None:
    ours = qmc.discrepancy(points(QMCTuner(sequence, scramble, seed=3), 200))
    assert ours < 0.25 * qmc.discrepancy(points(RandomTuner(3), 200))


def test_the_points_are_those_of_the_sequence_across_blocks() -> None:
    expected = qmc.Halton(2, scramble=False).random(150)
    assert points(QMCTuner("halton", scramble=False), 150) == pytest.approx(expected)


def test_scrambling_follows_the_seed() -> None:
    first, second, third = (points(QMCTuner(seed=seed), 8) for seed in (1, 1, 2))
    assert (first == second).all()
    assert (first != third).any()


def test_every_block_is_a_latin_hypercube() -> None:
    drawn = points(QMCTuner("lhs", block=10, seed=0), 20)
    for block in (drawn[:10], drawn[10:]):
        strata = np.sort(np.floor(block * 10), axis=0)
        assert (strata == np.arange(10)[:, None]).all()


def test_a_pickle_is_small_and_continues() -> None:
    tuner = QMCTuner(seed=1)
    points(tuner, 70)
    kept = cloudpickle.dumps(tuner)
    assert cloudpickle.loads(kept).generate_parameters(70) == tuner.generate_parameters(70)
