"""Surrogate models, which predict a result before it is measured; Gaussian processes and forests are in `numerics/`.

surrogate_tuner   the base class of GP, Metis, SMAC and DNGO: the first design, training data, the search
hyper_parameters  of several Gaussian processes, fitted again at intervals: Auto
neural_features   Bayesian linear regression on a network's features: DNGO
parzen            densities of good and of other points: TPE, BOHB, Metis
further_gain      what the search may still find: when to stop it
output_warping    losses as targets: bad ones are compressed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .further_gain import Outlook, expected_gain
    from .hyper_parameters import HyperParameters, interval_after
    from .neural_features import LinearPosterior, Network, regress
    from .output_warping import warped
    from .parzen import Mixture, ParzenHistory, features_of
    from .surrogate_tuner import Model, Score, SurrogateTuner, Training

_HOMES = {
    ".hyper_parameters": "HyperParameters interval_after",
    ".neural_features": "LinearPosterior Network regress",
    ".further_gain": "Outlook expected_gain",
    ".output_warping": "warped",
    ".parzen": "Mixture ParzenHistory features_of",
    ".surrogate_tuner": "Model Score SurrogateTuner Training",
}

__all__ = [
    "HyperParameters",
    "LinearPosterior",
    "Mixture",
    "Model",
    "Network",
    "Outlook",
    "ParzenHistory",
    "Score",
    "SurrogateTuner",
    "Training",
    "expected_gain",
    "features_of",
    "interval_after",
    "regress",
    "warped",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
