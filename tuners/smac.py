"""SMAC: a random forest models the objective, and the expected improvement over it is climbed.

Hutter, Hoos and Leyton-Brown, Sequential Model-Based Optimization for General Algorithm Configuration, LION 2011
Lindauer et al., SMAC3: A Versatile Bayesian Optimization Package, JMLR 23, 2022 (settings)
"""

from __future__ import annotations

from ..numerics import Floats, Forest, grow_forest
from ..plugins import integer, one_of
from .models import SurrogateTuner, Training

_RANDOM_SHARE = 0.1  # of the suggestions: every region is visited some day
_LARGEST_SET = 500


class SMACTuner(SurrogateTuner):
    """Bayesian optimisation with a forest of `trees` trees: quick, for choices and rough functions.

    `optimize_mode` is `maximize` or `minimize`, `seed` an integer of at least 0. The first `startup`
    suggestions fill the space, every tenth of the others is random. `config_dedup` is accepted: a configuration is
    never suggested twice. Raises ValueError for other arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = SMACTuner("minimize", seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(30):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> abs(tuner.generate_parameters(30)["x"] - 2) < 1
    True
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        config_dedup: bool = False,
        trees: int = 20,
        startup: int = 10,
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed, integer("startup", startup, 1), _LARGEST_SET)
        one_of("config_dedup", config_dedup, (True, False))
        self._trees = integer("trees", trees, 2)

    def _modelled(self) -> Floats:
        if self._rng.random() < _RANDOM_SHARE:
            return self._rng.random((1, self._layout.dimension))
        return super()._modelled()

    def _fit(self, training: Training) -> Forest:
        return grow_forest(self._rng, training.features, training.targets, self._trees)
