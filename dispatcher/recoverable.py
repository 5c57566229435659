"""What a dispatcher remembers of the run that it continues: the parameters that the earlier run made."""

from __future__ import annotations

from typing import Any

from ..plugins import CheckpointFolder
from ..protocol import loads


class Recoverable(CheckpointFolder):
    """Knows which parameter ids an earlier run made, so that new ids follow them.

    >>> dispatcher = Recoverable()
    >>> dispatcher.recover_parameter_id([{"parameter_id": 4, "parameters": {"x": 1}}])
    4
    >>> dispatcher.is_created_in_previous_exp(3), dispatcher.is_created_in_previous_exp(5)
    (True, False)
    >>> dispatcher.get_previous_param(4)
    {'x': 1}
    """

    recovered_max_param_id: int = -1

    def __init__(self) -> None:
        self.recovered_trial_params: dict[Any, Any] = {}

    def recover_parameter_id(self, data: list[Any] | dict[str, Any] | str) -> int:
        """Take records (or their JSON) of an earlier run; return its highest parameter id, or -1."""
        for item in data if isinstance(data, list) else [data]:
            record = loads(item) if isinstance(item, str) else item
            parameter_id = record.get("parameter_id")
            if isinstance(parameter_id, int):  # not for trials that the user added: theirs is null
                self.recovered_trial_params[parameter_id] = record.get("parameters")
                self.recovered_max_param_id = max(self.recovered_max_param_id, parameter_id)
        return self.recovered_max_param_id

    def is_created_in_previous_exp(self, parameter_id: Any) -> bool:
        """Return whether an earlier run made these parameters."""
        return isinstance(parameter_id, int) and parameter_id <= self.recovered_max_param_id

    def get_previous_param(self, parameter_id: Any) -> Any:
        """Return the parameters that an earlier run made, or None when they were not passed on."""
        return self.recovered_trial_params.get(parameter_id)

    def load_checkpoint(self) -> None:
        """Restore what `save_checkpoint` wrote; called at the start of a resumed run."""

    def save_checkpoint(self) -> None:
        """Write your own state."""
