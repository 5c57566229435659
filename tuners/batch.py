"""Batch: runs the configurations of a list, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..plugins import as_json
from ..protocol import Parameters
from ..search_space import SearchSpace, identity, plain_copy
from .tuner import NoMoreTrialError, Tuner


class BatchTuner(Tuner):
    """Serves the options of the one `choice` of the space; each is a complete set of parameters.

    Raises ValueError for any other space, NoMoreTrialError at the end of the list.

    >>> tuner = BatchTuner()
    >>> tuner.update_search_space({"run": {"_type": "choice", "_value": [{"x": 1}, {"x": 5}]}})
    >>> tuner.generate_multiple_parameters([0, 1, 2])
    [{'x': 1}, {'x': 5}]
    """

    learns = False

    def __init__(self) -> None:
        self._queue: list[Parameters] = []

    def update_search_space(self, search_space: Any) -> None:
        """Take the list; it replaces what is left of an earlier one."""
        specs = list(search_space.items()) if isinstance(search_space, dict) else []
        choice = specs[0][1] if len(specs) == 1 and isinstance(specs[0][1], dict) else {}
        options = choice.get("_value")
        # Not parsed as a space: an option may hold whatever the trial understands, a `_name` for instance.
        if choice.get("_type") != "choice" or not isinstance(options, list | tuple):
            raise ValueError("the Batch tuner needs a search space of exactly one choice")
        wrong = next((option for option in options if not isinstance(option, dict)), None)
        if wrong is not None:
            raise ValueError(
                f"every option of {specs[0][0]!r} must be an object of parameters, not {as_json(wrong)}"
            )
        self._queue = _allowed([plain_copy(option) for option in options], self.constraints)[::-1]

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Parameters:
        """Return the next configuration of the list."""
        if not self._queue:
            raise NoMoreTrialError("every configuration of the list was run")
        return self._queue.pop()

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        """Do nothing: the list does not depend on results."""

    def import_data(self, data: list[Any]) -> None:
        """Leave out the configurations that were measured before, whatever their value was."""
        done = {
            identity(item["parameter"]) for item in data if isinstance(item, dict) and "parameter" in item
        }
        self._queue = [option for option in self._queue if identity(option) not in done]


def _allowed(options: list[Parameters], constraints: Sequence[str]) -> list[Parameters]:
    """Return the options that meet the constraints, which are about the parameters inside the options."""
    if not constraints:
        return options
    values: dict[str, list[Any]] = {}
    for option in options:
        for name, value in option.items():
            values.setdefault(name, []).append(value)
    inside = {name: {"_type": "choice", "_value": seen} for name, seen in values.items()}
    space = SearchSpace.parse(inside, constraints)
    return [option for option in options if not space.violations(option)]
