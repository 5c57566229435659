"""Grid search: every point of a grid that gets finer and finer, in NNI's order."""

from __future__ import annotations

from typing import Any

from ..protocol import Parameters
from .base import NonRepeatingTuner, ready


class GridSearchTuner(NonRepeatingTuner):
    """Takes the middle of every continuous parameter, then the quartiles, the eighths, and so on.

    Where a point lies is measured by the CDF of the parameter's distribution. All options of a choice and all
    integers of a randint are there from the first round; types with a step end when all their values were
    visited. `optimize_mode` is accepted and ignored. Raises NoMoreTrialError when a finite space is done.
    Nothing is enumerated ahead, so the size of the grid does not matter.

    >>> tuner = GridSearchTuner()
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 8]}})
    >>> [tuner.generate_parameters(i)["x"] for i in range(7)]
    [4.0, 2.0, 6.0, 1.0, 3.0, 5.0, 7.0]
    """

    learns = False

    def __init__(self, optimize_mode: str | None = None) -> None:
        """Ignore `optimize_mode`, which configs written for NNI may pass."""

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Parameters:
        """Return the next point of the grid that meets the constraints and was not measured before."""
        return ready(self._explored).next_left()
