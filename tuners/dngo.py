"""DNGO: the features of a neural network under a Bayesian linear regression; linear in the number of results.

Snoek et al., Scalable Bayesian Optimization Using Deep Neural Networks, ICML 2015.
"""

from __future__ import annotations

from ..plugins import integer
from .models import (
    Everywhere,
    LinearPosterior,
    Model,
    Network,
    Score,
    SurrogateTuner,
    Training,
    log_expected_improvement,
    regress,
)

_LAYERS = (50, 50, 50)  # Snoek et al. 2015, section 3.1
_SCALE = 3.0  # of inputs: features of the unit interval have a variance of about 1/12
_LARGEST_SET = 1000


class DNGOTuner(SurrogateTuner):
    """Bayesian optimisation with a neural network: for hundreds of results and more.

    `optimize_mode` is `maximize` or `minimize`, `seed` an integer of at least 0. The network is trained again,
    for `num_epochs_per_training` epochs, when there are a quarter more results than at the last training, at
    the latest after `trials_per_update`; the regression uses every result. A suggestion is chosen from `sample_size`
    random candidates. The first `startup` suggestions fill the space. Raises ValueError for other
    arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = DNGOTuner("minimize", seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(15):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> abs(tuner.generate_parameters(15)["x"] - 2) < 1
    True
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        sample_size: int = 1000,
        trials_per_update: int = 20,
        num_epochs_per_training: int = 500,
        startup: int = 10,
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed, integer("startup", startup, 1), _LARGEST_SET)
        self._everywhere = Everywhere(random=integer("sample_size", sample_size, 1))
        self._every = integer("trials_per_update", trials_per_update, 1)
        self._epochs = integer("num_epochs_per_training", num_epochs_per_training, 1)

    def _begin(self) -> None:
        super()._begin()
        self._network: Network | None = None
        self._trained_with = 0

    def _fit(self, training: Training) -> LinearPosterior:
        inputs, n = training.features * _SCALE, self._history.finished
        network = self._network
        if network is None or n - self._trained_with >= min(self._every, max(self._trained_with // 4, 1)):
            network = self._network = Network(self._rng, inputs.shape[1], _LAYERS)
            network.train(inputs, training.targets, self._epochs)
            self._trained_with = n
        return regress(network, inputs, training.targets)

    def _acquisition(self, model: Model, training: Training) -> Score:
        best = float(training.targets.min())
        return lambda features: log_expected_improvement(*model.predict(features * _SCALE), best)
