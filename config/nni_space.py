"""Search spaces as NNI reads them: what it passes over is left out, with a remark."""

from __future__ import annotations

import math
from typing import Any

from .problems import Path, dotted, shown

_KEYS = ("_type", "_value")


def todays_space(space: dict[str, Any], at: Path = ("search_space",)) -> tuple[dict[str, Any], list[str]]:
    """Return a search space without what NNI passes over, and remarks; what cannot be read stays.

    >>> todays_space({"lr": {"_type": " uniform", "_value": [0, 1]}})
    ({'lr': {'_type': 'uniform', '_value': [0, 1]}}, ['search_space.lr._type: " uniform" is read as uniform'])
    """
    remarks: list[str] = []
    return {name: _parameter(spec, (*at, name), remarks) for name, spec in space.items()}, remarks


def _parameter(spec: Any, at: Path, remarks: list[str]) -> Any:
    if not isinstance(spec, dict) or not all(key in spec for key in _KEYS):
        return spec
    kind, values = spec["_type"], spec["_value"]
    remarks += [
        f"{dotted((*at, key))} has no effect: NNI reads _type and _value" for key in spec if key not in _KEYS
    ]
    if isinstance(kind, str) and kind != kind.strip():
        kind = kind.strip()
        remarks.append(f"{dotted(at)}._type: {shown(spec['_type'])} is read as {kind}")
    if kind == "choice":
        values = _options(values, (*at, "_value"), remarks)
    elif isinstance(values, list):
        values = _numbers(str(kind), values, (*at, "_value"), remarks)
    return {"_type": kind, "_value": values}


def _options(options: Any, at: Path, remarks: list[str]) -> Any:
    """Return the options of a choice; those with a `_name` hold parameters."""
    if not isinstance(options, list) or not all(isinstance(one, dict) and "_name" in one for one in options):
        return options
    found = []
    for number, option in enumerate(options):
        inner, more = todays_space(option, (*at, number))
        remarks += more
        found.append(inner)
    return found


def _numbers(kind: str, values: list[Any], at: Path, remarks: list[str]) -> list[Any]:
    most = 3 if kind.startswith("q") else 2
    if len(values) > most:
        values = values[:most]
        remarks.append(f"{dotted(at)}: only the first {most} numbers count: {shown(values)}")
    if kind == "randint" and any(isinstance(value, float) and math.isfinite(value) for value in values):
        values = [
            math.ceil(value) if isinstance(value, float) and math.isfinite(value) else value
            for value in values
        ]
        remarks.append(f"{dotted(at)}: randint has whole numbers: {shown(values)}")
    return values
