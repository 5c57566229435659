"""Mathematics that several rooms share; it knows nothing of trials, and names the papers beside the lines.

Of several objectives, all are minimised:

fronts             which points no other dominates, how isolated each is, the knee, the dominated volume

Models of a function that is known at some points:

gaussian_process   exact regression with a Matern kernel; its hyper-parameters are fitted
sparse_process     a smaller process, in which few coordinates matter
random_forest      regression trees that know how sure they are
functional_anova   one tree over the unit cube, and the variance that each axis explains in it

And of repeated results:

student_t          their mean, how sure it is, and whether one mean is clearly above another
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .arrays import Bools, Floats, Ints
    from .fronts import (
        Fronts,
        Point,
        added,
        crowding_distances,
        front_of,
        hypervolume,
        is_nondominated,
        knee_of,
        nondominated_ranks,
        reference_of,
    )
    from .functional_anova import grow_tree, main_effects, predicted
    from .gaussian_process import SMOOTHNESSES, Posterior, Prior, condition, fit, matern, squared_distances
    from .random_forest import Forest, grow_forest
    from .sparse_process import Effects, differences
    from .student_t import interval, is_clearly_worse, mean
else:
    __getattr__ = lazy_names(__name__, __file__)
