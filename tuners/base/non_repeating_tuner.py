"""The base class of tuners that learn from results only which points not to suggest again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...search_space import SearchSpace
from ..tuner import Tuner
from .explored import Explored, measurements, ready


class NonRepeatingTuner(Tuner):
    """Remembers every point that was suggested or measured; a subclass suggests others."""

    _explored: Explored | None = None

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space; points of an earlier one are not suggested again."""
        self._explored = Explored(SearchSpace.parse(search_space, self.constraints), self._explored)

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        """Remember the point, which may not be a suggestion of this tuner."""
        self.import_data([{"parameter": parameters, "value": value}])

    def update_running(self, points: Sequence[dict[str, Any]]) -> None:
        """Remember starting points that run already."""
        for point in points:
            ready(self._explored).add(point)

    def import_data(self, data: list[Any]) -> None:
        """Remember points that were measured before, whatever their value."""
        explored = ready(self._explored)
        for parameters, _ in measurements(explored, data):
            explored.add(parameters)
