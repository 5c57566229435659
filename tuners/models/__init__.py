"""Surrogate models, which predict a result before it is measured; several tuners share them.

surrogate_tuner   the base class of GP, Metis, SMAC and DNGO: the first design, training data, the search
gaussian_process  exact regression with a Matern kernel (`matern_kernel`): Auto, GP, Metis, PB2
hyper_parameters  of several such processes, fitted again at intervals
random_forest     regression trees: SMAC
neural_features   Bayesian linear regression on a network's features: DNGO
parzen            densities of good and of other points: TPE, BOHB, Metis
outlook           what the search may still find: when to stop it
output_warping    losses as targets: bad ones are compressed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .gaussian_process import Posterior, Prior, condition, fit
    from .hyper_parameters import HyperParameters, interval_after
    from .matern_kernel import SMOOTHNESSES, matern
    from .neural_features import LinearPosterior, Network, regress
    from .outlook import Outlook, expected_gain
    from .output_warping import warped
    from .parzen import Mixture, ParzenHistory, features_of
    from .random_forest import Forest, grow
    from .surrogate_tuner import Model, Score, SurrogateTuner, Training

_HOMES = {
    ".gaussian_process": "Posterior Prior condition fit",
    ".hyper_parameters": "HyperParameters interval_after",
    ".matern_kernel": "SMOOTHNESSES matern",
    ".neural_features": "LinearPosterior Network regress",
    ".outlook": "Outlook expected_gain",
    ".output_warping": "warped",
    ".parzen": "Mixture ParzenHistory features_of",
    ".random_forest": "Forest grow",
    ".surrogate_tuner": "Model Score SurrogateTuner Training",
}

__all__ = [
    "SMOOTHNESSES",
    "Forest",
    "HyperParameters",
    "LinearPosterior",
    "Mixture",
    "Model",
    "Network",
    "Outlook",
    "ParzenHistory",
    "Posterior",
    "Prior",
    "Score",
    "SurrogateTuner",
    "Training",
    "condition",
    "expected_gain",
    "features_of",
    "fit",
    "grow",
    "interval_after",
    "matern",
    "regress",
    "warped",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
