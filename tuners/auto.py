"""Auto, the default tuner: a Gaussian process where it helps, and what works without a model where it does not.

    Snoek et al., Practical Bayesian Optimization of Machine Learning Algorithms, NIPS 2012 (the method)
    Ginsbourger et al., Kriging is well-suited to parallelize optimization, 2010 (the kriging believer)

What each ingredient is worth was measured; see docs/search-quality.md.
"""

from __future__ import annotations

import math

import numpy as np

from .acquisition import log_expected_improvement
from .auto_settings import Settings
from .embedding import Embedding, active_dimension
from .explored import ready
from .gaussian_process import Posterior, Prior, condition, fit
from .initial_design import initial_design
from .layout import Floats, Ints
from .learner import LearningTuner
from .local_moves import mutants
from .output_transform import transformed


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
        self._theta: Floats | None = None
        self._fitted_at = 0
        self._design = iter(
            initial_design(
                self._rng,
                self._embedding,
                s.design_points,
                centre_first=s.centre_first,
                spread=s.design_spread,
            )
        )

    def _proposals(self) -> Floats:
        """Return candidates, shape (m, d), the best first."""
        history, s = self._history, self.settings
        if history.count < s.design_points or history.successes < min(4, s.design_points):
            planned = next(self._design, None)
            return np.empty((0, self._layout.dimension)) if planned is None else planned[None]
        if self._rng.random() < s.model_free_share:
            return self._model_free_step()
        return self._model_based()

    def _model_free_step(self) -> Floats:
        """Change one of the best results a little (as simulated annealing does)."""
        history = self._history
        place = min(int(self._rng.geometric(0.4)), history.successes) - 1
        return mutants(self._rng, self._embedding, history.units(history.ranked[place : place + 1]), 10)

    def _model_based(self) -> Floats:
        """Return candidates in order of expected improvement."""
        s = self.settings
        rows, losses = self._training_set()
        units = self._history.units(rows)
        features, targets = self._embedding.features(units), transformed(losses, s.output_transform)
        self._refit(units, features, targets)
        posterior = condition(self._hyper(), features, targets, self._embedding.groups)
        posterior, units, believed = self._with_running(posterior, units, features, targets)
        best = float(posterior.mean(self._embedding.features(units)).min())
        return self._climb(posterior, best, units[np.argsort(believed, kind="stable")[: s.climbers]])

    def _hyper(self) -> Floats:
        assert self._theta is not None
        return self._theta

    def _training_set(self) -> tuple[Ints, Floats]:
        """Return rows and losses that the model learns from: all, or the best, the newest and some others."""
        ranked, losses, limit = self._history.ranked, self._history.losses, self.settings.largest_set
        if len(ranked) <= limit:
            return ranked, losses
        newest = np.argsort(ranked)[-(limit // 4) :]
        some = self._rng.choice(len(ranked), limit // 4, replace=False)
        places = np.unique(np.concatenate([np.arange(limit // 2), newest, some]))
        return ranked[places], losses[places]

    def _refit(self, units: Floats, features: Floats, targets: Floats) -> None:
        n, s = len(targets), self.settings
        every = 1 if n <= 40 else 2 if n < 100 else 5
        if self._theta is not None and self._history.count - self._fitted_at < every:
            return
        # Hvarfner et al. 2024: distances grow with the square root of the dimension, so length-scales must.
        length_scale = s.length_scale * math.sqrt(max(active_dimension(units), 1.0) / 4)
        prior = Prior(length_scale, s.length_scale_spread, noise=s.noise, noise_spread=s.noise_spread)
        iterations = 40 if self._theta is None else 12
        self._theta = fit(features, targets, self._embedding.groups, prior, self._theta, iterations)
        self._fitted_at = self._history.count

    def _with_running(
        self, posterior: Posterior, units: Floats, features: Floats, targets: Floats
    ) -> tuple[Posterior, Floats, Floats]:
        """Take the mean for the result of each running trial (Ginsbourger et al. 2010, section 4)."""
        running = self._history.units(self._running_rows())
        if not len(running):
            return posterior, units, targets
        more = self._embedding.features(running)
        believed = np.concatenate([targets, posterior.mean(more)])
        theta = self._hyper()
        posterior = condition(theta, np.concatenate([features, more]), believed, self._embedding.groups)
        return posterior, np.concatenate([units, running]), believed

    def _climb(self, posterior: Posterior, best: float, starts: Floats) -> Floats:
        """Return candidates ordered by expected improvement: random ones, and climbers from the best results."""
        s, embedding = self.settings, self._embedding

        def score(units: Floats) -> Floats:
            return log_expected_improvement(*posterior.predict(embedding.features(units)), best)

        random = embedding.snap(self._rng.random((s.random_candidates, embedding.layout.dimension)))
        units = np.concatenate([random, mutants(self._rng, embedding, starts, 60)])
        scores = score(units)
        for _ in range(s.climb_rounds):
            top = np.argsort(-scores, kind="stable")[:40]
            units, scores = units[top], scores[top]
            changed = mutants(self._rng, embedding, units[:8], 20)
            units, scores = np.concatenate([units, changed]), np.concatenate([scores, score(changed)])
        return units[np.argsort(-scores, kind="stable")]
