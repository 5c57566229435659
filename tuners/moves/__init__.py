"""Ways to find the next point on a model."""

from .acquisition import log_expected_improvement
from .climbing import climb
from .first_points import initial_design
from .local_moves import mutants
from .regions import Box, Branch, Everywhere, Region, neglected_branch, principal_axes
from .trust_region import TrustRegion

__all__ = [
    "Box",
    "Branch",
    "Everywhere",
    "Region",
    "TrustRegion",
    "climb",
    "initial_design",
    "log_expected_improvement",
    "mutants",
    "neglected_branch",
    "principal_axes",
]
