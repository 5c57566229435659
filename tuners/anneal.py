"""Annealing: draw a point near one of the best trials, nearer with every result.

After the `anneal` of hyperopt (Bergstra, Yamins and Cox, Making a Science of Model Search, ICML 2013), which NNI offers
under this name: it has no temperature; what cools down is the width of the neighbourhood.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..numerics import Floats, Ints
from ..plugins import one_of
from .base import LearningTuner

_MEAN_RANK = 2.0  # of the trial to start from; 1 is the best
_COOLING = 0.1  # after n results the neighbourhood has 1 / (1 + 0.1 n) of its first width
_RANKS = 64  # best trials to choose from; a worse one is wanted with a probability of 1e-19
_PROPOSALS = 50
_FEW_VALUES = 32


class AnnealTuner(LearningTuner):
    """Takes one of the best trials and moves every parameter within a neighbourhood that shrinks.

    `optimize_mode` is `minimize` or `maximize`, `seed` an integer of at least 0. With `parallel_optimize`
    running trials count as results, as good as the best (`constant_liar_type` `min`), the mean or the worst
    (`max`) so far. Raises ValueError for other arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = AnnealTuner(seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(60):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> abs(tuner.generate_parameters(60)["x"] - 2) < 1.5
    True
    """

    def __init__(
        self,
        optimize_mode: str = "minimize",
        parallel_optimize: bool = False,
        constant_liar_type: str = "min",
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        self._parallel = bool(one_of("parallel_optimize", parallel_optimize, (True, False)))
        self._liar = str(one_of("constant_liar_type", constant_liar_type, ("min", "mean", "max")))

    def _begin(self) -> None:
        self._counts = np.zeros(self._layout.dimension)  # results in which each parameter was active
        self._cells = np.zeros(self._layout.dimension)
        self._cells[self._layout.numeric] = self._layout.cells
        # A parameter with few values keeps its own or is drawn again: it would not leave a narrow neighbourhood.
        self._kept = self._cells * _FEW_VALUES >= 1
        self._kept[self._layout.choices] = True

    def _settled(self, row: int) -> None:
        self._counts += ~np.isnan(self._history.units(np.array([row]))[0])

    def _proposals(self) -> Iterator[Floats]:
        best = self._history.units(self._best_rows())
        for _ in range(_PROPOSALS):
            yield self._near(best)

    def _best_rows(self) -> Ints:
        """Return the rows to take values from, best first."""
        history = self._history
        finite = history.successes
        if not (self._parallel and self._running and finite):
            return history.ranked[: min(finite, _RANKS)]
        losses = history.losses[:finite]
        place = {"min": 0, "mean": int(np.searchsorted(losses, losses.mean())), "max": finite}[self._liar]
        ranked = history.ranked[: min(finite, _RANKS)]
        return np.concatenate([ranked[:place], self._running_rows(), ranked[place:]])[:_RANKS]

    def _near(self, best: Floats) -> Floats:
        """Return a point near one of the points `best`, shape (k, d), best first; shape (d,)."""
        fresh = self._rng.random(self._layout.dimension)
        if not len(best):
            return fresh
        centre = self._centre(best)
        width = np.maximum(1 / (1 + _COOLING * self._counts), np.minimum(2 * self._cells, 1) * ~self._kept)
        units = self._numbers(centre, width, fresh)
        keep = self._rng.random(len(fresh)) >= width
        units[self._kept] = np.where(keep, centre, fresh)[self._kept]
        return np.where(np.isnan(centre), fresh, units)

    def _centre(self, best: Floats) -> Floats:
        """Return one of the points; what is inactive in it comes from another, or is NaN if inactive in all."""
        centre = self._pick(best)
        while np.isnan(centre).any():
            informative = best[~np.isnan(best[:, np.isnan(centre)]).all(axis=1)]
            if not len(informative):
                break
            centre = np.where(np.isnan(centre), self._pick(informative), centre)
        return centre

    def _pick(self, points: Floats) -> Floats:
        return points[min(int(self._rng.geometric(1 / _MEAN_RANK)), len(points)) - 1]

    def _numbers(self, centre: Floats, width: Floats, fresh: Floats) -> Floats:
        """Return uniform draws from the neighbourhoods, moved to lie within 0 and 1."""
        return np.clip(centre - width / 2, 0.0, 1 - width) + fresh * width
