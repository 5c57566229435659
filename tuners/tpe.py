"""Tree-structured Parzen estimator: suggest where good results are dense and the others are rare.

    Bergstra et al., Algorithms for Hyper-Parameter Optimization, NIPS 2011 (the method)
    Falkner et al., BOHB, ICML 2018 (one multivariate density instead of one per parameter)
    Watanabe, Tree-Structured Parzen Estimator, arXiv 2304.11127, 2023 (splits, weights, bandwidths compared)

The constants were chosen on tasks of many kinds, nested and mixed spaces among them; see docs/reference/tuners/tpe.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..numerics import Floats, Ints
from ..plugins import integer, merged, one_of, positive
from ..protocol import Json
from .base import Layout, LearningTuner, latin_hypercube
from .models import Mixture, ParzenHistory, features_of

DEFAULTS = {
    "constant_liar_type": "worst",
    "n_startup_jobs": 10,
    "n_ei_candidates": 24,
    "linear_forgetting": 25,
    "prior_weight": 1.0,
    "gamma": 0.8,
}

_BANDWIDTH = 0.15  # of the unit interval, for a single observation
_NARROWEST = 1e-3  # Falkner et al. 2018: min_bandwidth
_STEPS_PER_OCTAVE = 8  # bandwidths are rounded, so that those of the large set seldom change
_LARGEST_SET = 500  # observations in the density of the others; beyond it, every n-th by rank
_FLIP = 0.7
_HARDLY = 1e-9  # a prior without any weight: densities stay above 0


class TPETuner(LearningTuner):
    """Models the good and the other results by densities l and g, and suggests where l / g is highest.

    `optimize_mode` is `minimize` or `maximize`, `seed` an integer of at least 0. `tpe_args` may
    hold `n_startup_jobs` (random suggestions first), `n_ei_candidates` (draws from l each time),
    `gamma` (of n results, ceil(gamma sqrt(n)) are good), `linear_forgetting` (at most so many are good),
    `prior_weight` (the weight of the search space itself, in observations) and `constant_liar_type`
    (the result that running trials count with: `best`, `mean`, `worst` or None, to ignore them).
    Raises ValueError for other arguments, NoMoreTrialError when a finite space is exhausted. A failed trial
    and NaN count as the worst result.

    >>> tuner = TPETuner(seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(40):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> abs(tuner.generate_parameters(40)["x"] - 2) < 1
    True
    """

    def __init__(
        self,
        optimize_mode: str = "minimize",
        seed: int | None = None,
        tpe_args: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        args = merged("tpe_args", DEFAULTS, tpe_args)
        lies = ("best", "mean", "worst", None)
        self._liar: str | None = one_of("tpe_args: constant_liar_type", args["constant_liar_type"], lies)
        self._startup = integer("tpe_args: n_startup_jobs", args["n_startup_jobs"], 1)
        self._candidates = integer("tpe_args: n_ei_candidates", args["n_ei_candidates"], 1)
        self._most_good = integer("tpe_args: linear_forgetting", args["linear_forgetting"], 1)
        weight = args["prior_weight"]
        self._prior_weight = _HARDLY if weight == 0 else positive("tpe_args: prior_weight", weight)
        self._gamma = positive("tpe_args: gamma", args["gamma"])
        self._history: ParzenHistory

    def _new_history(self, layout: Layout) -> ParzenHistory:
        return ParzenHistory(layout)

    def _begin(self) -> None:
        design = latin_hypercube(self._rng, self._startup, self._layout.dimension)
        self._design = iter(self._layout.deactivate(self._prior.mixed(design)))

    def _proposals(self) -> Floats:
        """Return candidates, shape (m, d), the best first: of the start-up design, then of the model."""
        history = self._history
        if history.count < self._startup or history.successes < (self._startup + 1) // 2:
            planned = next(self._design, None)
            return np.empty((0, self._layout.dimension)) if planned is None else planned[None]
        good, others = self._densities()
        units = good.sample(self._rng, self._candidates)
        if weight := self._weight_of_prior():
            more = self._prior.drawn(self._rng.random((self._candidates, self._layout.dimension)))
            units = np.concatenate([units, self._layout.deactivate(more)])
        codes = self._layout.codes(units)
        # Bergstra et al. 2011, eq. 3: the expected improvement grows with l / g.
        ratio = good.log_density(units, codes) - others.log_density(units, codes)
        if weight:
            ratio += weight * self._prior.log_density(units)
        return units[np.argsort(-ratio, kind="stable")]

    def _densities(self) -> tuple[Mixture, Mixture]:
        """Return l and g (Bergstra et al. 2011, eq. 2)."""
        history = self._history
        wanted = math.ceil(self._gamma * math.sqrt(history.finished))
        count = max(1, min(wanted, self._most_good, history.successes))
        good, others = history.ranked[:count], history.ranked[count:]
        losses = history.losses[: count + 1]
        running = self._running_rows()
        if self._lie_is_good(losses):
            good = np.concatenate([good, running[-count:]])
        elif self._liar is not None:
            others = np.concatenate([others, running])
        if len(others) > _LARGEST_SET:
            others = others[np.linspace(0, len(others) - 1, _LARGEST_SET).astype(np.int64)]
        weights = _improvement_weights(losses, len(good))
        features = features_of(self._layout, history.units(good), self._bandwidth(len(good)))
        known = history.features(others, self._bandwidth(len(others)))
        return self._mixture(good, features, weights), self._mixture(others, known, np.ones(len(others)))

    def _lie_is_good(self, losses: Floats) -> bool:
        """Return whether running trials count as good ones; `losses` are those of the good and the next one."""
        if self._liar == "mean":
            finite = self._history.losses[: self._history.successes]
            return bool(finite.mean() < losses[-1])
        return self._liar == "best"

    def _mixture(self, rows: Ints, features: Floats, weights: Floats) -> Mixture:
        n = len(rows)
        mass = np.append(weights, self._prior_weight)
        # The weight that the prior has among n observations also goes to the other options of a choice.
        odds = _FLIP * self._prior_weight * float(self._layout.options.max(initial=2)) / (n + 1)
        return Mixture(
            layout=self._layout,
            features=features,
            codes=self._history.codes(rows),
            weights=mass / mass.sum(),
            bandwidth=self._bandwidth(n),
            flip=min(odds / (1 + odds), 0.9),
        )

    def _bandwidth(self, n: int) -> Floats:
        """Return the bandwidth of each numeric parameter, shape (p,): Scott's rule, at least half a value."""
        scott = _BANDWIDTH * max(n, 1) ** (-1 / (4 + self._layout.dimension))
        rounded = 2.0 ** (round(_STEPS_PER_OCTAVE * math.log2(scott)) / _STEPS_PER_OCTAVE)
        return np.maximum(rounded, np.maximum(self._layout.cells / 2, _NARROWEST))


def _improvement_weights(losses: Floats, count: int) -> Floats:
    """Return the weights of the good observations: half equal, half by improvement over the next one.

    The second half is Watanabe's "expected improvement" weighting (2023, section 3); the equal half keeps one
    outlier from dominating. Points beyond the losses are running trials, which count as the best.
    """
    good = losses[:-1] if len(losses) > 1 else losses
    gain = np.resize(losses[-1] - good, count)
    gain[len(good) :] = gain[0]
    total = gain.sum()
    if not 0 < total < math.inf:
        return np.ones(count)
    return 0.5 + 0.5 * gain / total * count


TpeTuner = TPETuner
