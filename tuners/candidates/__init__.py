"""Where the next point may lie, and what each candidate is worth on a model; several tuners share it.

acquisition  the expected improvement, of one objective and of several
climbing     hill-climbing from the best candidates
regions      where to search: everywhere, one branch, a box around the best point
mutation     small changes of points
niches       directions spread over several objectives, and the points near each
"""

from __future__ import annotations

from .acquisition import Boxes, log_expected_hypervolume_improvement, log_expected_improvement, thinned_front
from .climbing import climb
from .mutation import mutants
from .niches import niched, reference_points
from .regions import Box, Branch, Everywhere, Region, neglected_branch, principal_axes
