"""Auto, the default tuner: a Gaussian process where it helps, and what works without a model where it does not.

    Snoek et al., Practical Bayesian Optimization of Machine Learning Algorithms, NIPS 2012 (the method)
    Ginsbourger et al., Kriging is well-suited to parallelize optimization, 2010 (the kriging believer)

What each ingredient is worth was measured; see docs/search-quality.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .auto_settings import Settings
from .climbing import climb
from .embedding import Embedding
from .explored import ready
from .initial_design import initial_design
from .layout import Floats, Ints
from .learner import LearningTuner
from .local_moves import mutants
from .regions import Box, Everywhere, Region, neglected_branch
from .auto_model import Belief, Surrogate
from .trust_region import TrustRegion

_FEWEST = 4  # results that a model makes sense with


class AutoTuner(LearningTuner):
    """Suggests where the model expects the largest improvement; picks its ways by itself.

    ``optimize_mode`` is ``minimize`` or ``maximize``, ``seed`` an integer of at least 0. Raises ValueError for other
    arguments, NoMoreTrialError when a finite space is exhausted. A failed trial and NaN count as the worst result.

    >>> tuner = AutoTuner(seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(30):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> min(abs(tuner.generate_parameters(i)["x"] - 2) for i in range(30, 33)) < 0.5
    True
    """

    settings: Settings = Settings()  # for measurements, which set others before the search space is given

    def _begin(self) -> None:
        s = self.settings
        space = ready(self._explored).space
        self._embedding = Embedding.of(space, ordered_choices=s.ordered_choices, shared_names=s.shared_names)
        self._surrogate = Surrogate(self._embedding, s)
        self._trust = TrustRegion(self._layout.dimension)
        self._tried: dict[
            int, float
        ] = {}  # rows suggested inside the trust region, with the best loss of then
        self._is_local = False
        design = initial_design(self._rng, self._embedding, s.design_points, centre_first=s.centre_first)
        self._design = iter(design)

    def _proposals(self) -> Iterable[Floats]:
        history, s = self._history, self.settings
        self._is_local = False
        if history.count < s.design_points or history.successes < _FEWEST:
            planned = next(self._design, None)
            return [] if planned is None else [planned]
        if self._rng.random() < s.model_free_share:
            return self._model_free_step()
        return self._model_based()

    def _suggested(self, parameter_id: int, row: int) -> None:
        if self._is_local:
            self._tried[row] = float(self._history.losses[0])

    def _settled(self, row: int) -> None:
        best = self._tried.pop(row, None)
        if best is not None:
            self._trust.tell(improved=self._history.loss(row) < best)

    def _model_free_step(self) -> Floats:
        """Change one of the best results a little, as simulated annealing does."""
        history = self._history
        place = min(int(self._rng.geometric(0.4)), history.successes) - 1
        return mutants(self._rng, self._embedding, history.units(history.ranked[place : place + 1]), 10)

    def _model_based(self) -> Floats:
        """Return candidates in order of expected improvement."""
        rows, losses = self._training_set()
        running = self._history.units(self._running_rows())
        belief = self._surrogate.belief(self._history.units(rows), losses, None, running, self._history.count)
        best = belief.units[: self.settings.climbers]
        region = self._region(belief)
        return climb(self._rng, self._embedding, region, belief.score, best, self.settings.climb_rounds)

    def _region(self, belief: Belief) -> Region:
        """Return where to look this time."""
        s, draw = self.settings, float(self._rng.random())
        self._is_local = draw < s.local_share
        if self._is_local:
            return Box(belief.units[0], self._trust.radius)
        if draw < s.local_share + s.branch_share:
            branch = neglected_branch(
                self._rng, self._layout, self._history.units(np.arange(self._history.count))
            )
            return branch or Everywhere()
        return Everywhere()

    def _training_set(self) -> tuple[Ints, Floats]:
        """Return rows and losses that the model learns from: all, or the best, the newest and some others."""
        ranked, losses, limit = self._history.ranked, self._history.losses, self.settings.largest_set
        if len(ranked) <= limit:
            return ranked, losses
        newest = np.argsort(ranked)[-(limit // 4) :]
        some = self._rng.choice(len(ranked), limit // 4, replace=False)
        places = np.unique(np.concatenate([np.arange(limit // 2), newest, some]))
        return ranked[places], losses[places]
