"""Surrogate models, which predict a result before it is measured, and the search for the point that they think best.

Gaussian processes and forests are in `numerics/`.

surrogate_tuner  the base class of GP, Metis, SMAC and DNGO: the first design, training data, the search
regions          where to search, and hill-climbing there
acquisition      the expected improvement, of one objective and of several
fitting          losses as targets of Gaussian processes, and their hyper-parameters
parzen           densities of good and of other points: TPE, BOHB, Metis
further_gain     what the search may still find: when to stop it
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
    from .fitting import HyperParameters, dimension_factor, interval_after, warped
    from .further_gain import expected_gain
    from .parzen import Mixture, ParzenHistory, by_ratio, features_of
    from .regions import Box, Branch, Everywhere, Region, climb, mutants, neglected_branch, principal_axes
    from .surrogate_tuner import Model, Score, SurrogateTuner, Training
else:
    __getattr__ = lazy_names(__name__, __file__)
