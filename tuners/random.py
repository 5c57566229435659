"""Random search: independent samples of the space, none of them twice where the space is discrete.

Bergstra and Bengio, Random Search for Hyper-Parameter Optimization, JMLR 13, 2012.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plugins import seed_of
from ..protocol import Parameters
from .base import NonRepeatingTuner, ready


class RandomTuner(NonRepeatingTuner):
    """Samples every parameter from its own distribution; results do not matter.

    `seed` (an integer of at least 0) makes the sequence reproducible. `optimize_mode` is accepted and
    ignored. Raises NoMoreTrialError when a finite space is exhausted.

    >>> tuner = RandomTuner(seed=1)
    >>> tuner.update_search_space({"x": {"_type": "randint", "_value": [0, 3]}})
    >>> sorted(tuner.generate_parameters(i)["x"] for i in range(3))
    [0, 1, 2]
    """

    learns = False

    def __init__(self, seed: int | None = None, optimize_mode: str | None = None) -> None:
        self._rng = np.random.default_rng(seed_of(seed))

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Parameters:
        """Return a random point of the space that was not suggested before."""
        explored = ready(self._explored)
        if explored.is_endless:
            return explored.space.sample(self._rng)  # there is nothing to remember
        return explored.new_point(lambda: explored.space.sample(self._rng))
