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
    from .further_gain import expected_gain
    from .hyper_parameters import HyperParameters, interval_after
    from .neural_features import LinearPosterior, Network, regress
    from .output_warping import warped
    from .parzen import Mixture, ParzenHistory, features_of
    from .surrogate_tuner import Model, Score, SurrogateTuner, Training
else:
    __getattr__ = lazy_names(__name__, __file__)
