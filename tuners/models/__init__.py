"""Surrogate models, which predict a result before it is measured, and the search for the point that they think best.

Gaussian processes and forests are in `numerics/`.

surrogate_tuner   the base class of GP, Metis, SMAC and DNGO: the first design, training data, the search
acquisition       the expected improvement, of one objective and of several
climbing          hill-climbing from the best candidates
regions           where to search: everywhere, one branch, a box around the best point
mutation          small changes of points
niches            directions spread over several objectives, and the points near each
fitting           hyper-parameters of several Gaussian processes, fitted again at intervals: Auto
neural_features   Bayesian linear regression on a network's features: DNGO
parzen            densities of good and of other points: TPE, BOHB, Metis
further_gain      what the search may still find: when to stop it
output_warping    losses as targets: bad ones are compressed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .acquisition import (
        Boxes,
        log_expected_hypervolume_improvement,
        log_expected_improvement,
        thinned_front,
    )
    from .climbing import climb
    from .fitting import HyperParameters, interval_after
    from .further_gain import expected_gain
    from .mutation import mutants
    from .neural_features import LinearPosterior, Network, regress
    from .niches import niched, reference_points
    from .output_warping import warped
    from .parzen import Mixture, ParzenHistory, features_of
    from .regions import Box, Branch, Everywhere, Region, neglected_branch, principal_axes
    from .surrogate_tuner import Model, Score, SurrogateTuner, Training
else:
    __getattr__ = lazy_names(__name__, __file__)
