"""The sweep overrides of Hydra as a search space, and proposed parameters as overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .requirements import required

types = required("hydra.core.override_parser.types", "1.3")

__all__ = ["HydraSpace"]


class HydraSpace:
    """Overrides of which some are sweeps: `choice`, `range`, `interval`, and their short forms.

    `tag(log, ...)` searches on a logarithmic scale, and `int(interval(1, 8))` is an integer, 8 included. Raises
    ValueError for a sweep that leaves nothing to search.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        last = {one.get_key_element(): one for one in given}  # as everywhere in Hydra, the last one counts
        self._fixed = [one.input_line for one in last.values() if not one.is_sweep_override()]
        self._keys = {_name(one): key for key, one in last.items() if one.is_sweep_override()}
        self.form = {_name(one): _form(one) for one in last.values() if one.is_sweep_override()}
        if not self.form:
            raise ValueError(
                "there is nothing to search: no override is a sweep, such as lr=interval(0.1, 1)"
            )

    def overrides(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return the overrides of a job."""
        found = [f"{self._keys[name]}={value}" for name, value in parameters.items()]
        return [*self._fixed, *found]


def _name(override: Any) -> str:
    """Return the name of a parameter: its key without the `+`."""
    return override.get_key_element().lstrip("+")


def _form(override: Any) -> dict[str, Any]:
    value = override.value()
    logarithmic = "log" in getattr(value, "tags", ())
    if override.is_interval_sweep():
        return _interval(value.start, value.end, "log" if logarithmic else "")
    if override.is_range_sweep() and logarithmic and value.step == 1 and isinstance(value.start, int):
        return {"_type": "lograndint", "_value": [value.start, value.stop]}
    if override.is_range_sweep() and value.step == 1 and isinstance(value.start, int):
        return {"_type": "randint", "_value": [value.start, value.stop]}
    return {"_type": "choice", "_value": list(override.sweep_iterator(_option))}


def _interval(start: float, end: float, scale: str) -> dict[str, Any]:
    if isinstance(start, int) and isinstance(end, int):
        return {"_type": f"{scale}randint", "_value": [start, end + 1]}
    return {"_type": f"{scale}uniform", "_value": [start, end]}


def _option(value: Any) -> Any:
    """Return a number as it is, and everything else in the syntax of overrides."""
    return value if isinstance(value, int | float) else types.Transformer.str(value)
