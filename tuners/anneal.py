"""Annealing: draw each parameter near the value of one of the best trials, ever nearer as results come in.

After the `anneal` of hyperopt (Bergstra, Yamins and Cox, Making a Science of Model Search, ICML 2013), which NNI offers
under this name: it has no temperature; what cools down is the width of the neighbourhood.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .arguments import one_of
from .layout import Floats, Ints
from .learner import LearningTuner

_MEAN_RANK = 2.0  # of the trial that a value is taken from; 1 is the best
_COOLING = 0.1  # after n results the neighbourhood has 1 / (1 + 0.1 n) of its first width
_RANKS = 64  # best trials looked at; that a worse one is wanted has a probability of 1e-19
_PROPOSALS = 50


class AnnealTuner(LearningTuner):
    """Takes every parameter from one of the best trials and moves it within a neighbourhood that shrinks.

    ``optimize_mode`` is ``minimize`` or ``maximize``, ``seed`` an integer of at least 0. With ``parallel_optimize``
    running trials count as results, as good as the best (``constant_liar_type`` ``min``), the mean or the worst
    (``max``) so far. Raises ValueError for other arguments, NoMoreTrialError when a finite space is exhausted.

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
        """Return a point whose parameters are near those of points `best`, shape (k, d), best first; shape (d,)."""
        d = self._layout.dimension
        fresh, rank = self._rng.random(d), self._rng.geometric(1 / _MEAN_RANK, d)
        if not len(best):
            return fresh
        active = ~np.isnan(best)
        # Of each parameter, the row of the rank-th trial in which it was active, or of the last such trial.
        rank = np.minimum(rank, active.sum(axis=0))
        row = np.argmax(np.cumsum(active, axis=0) >= np.maximum(rank, 1), axis=0)
        centre = best[row, np.arange(d)]
        width = 1 / (1 + _COOLING * self._counts)
        units = self._numbers(centre, width, fresh)
        keep = self._rng.random(d) >= width
        choices = self._layout.choices
        units[choices] = np.where(keep, centre, fresh)[choices]
        return np.where(rank > 0, units, fresh)

    def _numbers(self, centre: Floats, width: Floats, fresh: Floats) -> Floats:
        """Return uniform draws from the neighbourhoods, cut off at 0 and 1."""
        low, high = np.maximum(centre - width / 2, 0.0), np.minimum(centre + width / 2, 1.0)
        return low + fresh * (high - low)
