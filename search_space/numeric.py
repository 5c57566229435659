"""The numbers in the `_value` of a numeric type: which are valid, and the Parameter fields they become."""

from __future__ import annotations

import math
from typing import Any

from .json_values import number
from .parameter import NUMERIC, Kind
from .problems import Path, Problem, show

__all__ = ["MAX_INTEGER", "MAX_LOG", "MAX_STEPS", "grid_range", "read_numbers"]

MAX_STEPS = 2**40  # multiples of q: beyond it doubles in the unit cube cannot tell neighbours apart
MAX_INTEGER = 2**49  # bounds of randint, for the same reason; those of lograndint end at MAX_STEPS
_TIE = 1e-9  # steps; 0.15 / 0.1 is 1.4999999999999998
MAX_LOG = 700.0  # exp() of up to 709.78 is a finite double; models and figures need some room


def read_numbers(type_name: str, values: list[Any], path: Path) -> tuple[dict[str, Any], list[Problem]]:
    """Return the Parameter fields of this numeric type, and all problems (no fields if there are any)."""
    kind = NUMERIC[type_name]
    problems = _problems_of_length(type_name, kind, values, path)
    for i, value in enumerate(values):
        problems += _problems_of_number(type_name, kind, value, (*path, i))
    if problems:
        return {}, problems
    fields = dict(zip(kind.arguments, values, strict=True))
    problems = _problems_of_fields(type_name, kind, fields, path)
    if problems:
        return {}, problems
    fields = {name: value if kind.integer else float(value) for name, value in fields.items()}
    return fields | {"size": _size(kind, fields)}, []


def _problems_of_length(type_name: str, kind: Kind, values: list[Any], path: Path) -> list[Problem]:
    if len(values) == len(kind.arguments):
        return []
    form = f"[{', '.join(kind.arguments)}]"
    hint = f"q{type_name} has a step" if len(values) == 3 and f"q{type_name}" in NUMERIC else ""
    return [Problem(path, f"{type_name} needs {form}, not {len(values)} values", hint)]


def _problems_of_number(type_name: str, kind: Kind, value: Any, path: Path) -> list[Problem]:
    if isinstance(value, str):
        return [Problem(path, f"{show(value)} is a string, not a number", _string_hint(value))]
    plain = number(value)
    if plain is None or type(value) not in (int, float):
        finite = " finite" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        return [Problem(path, f"{show(value)} is not a{finite} number")]
    if not kind.integer:
        return []
    limit = MAX_STEPS if kind.log else MAX_INTEGER
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) <= limit
        fractions = "loguniform or qloguniform" if kind.log else "uniform or quniform"
        hint = f"write {int(value)}" if whole else f"use {fractions} for fractions"
        return [Problem(path, f"{type_name} needs integers, not {value!r}", hint)]
    if abs(value) > limit:
        return [Problem(path, f"{show(value)} is beyond the limit of {limit} for {type_name}")]
    return []


def _string_hint(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return ""
    if not math.isfinite(value):
        return "bounds must be finite"
    mantissa, mark, exponent = text.strip().lower().partition("e")
    # YAML 1.1 reads a number with an exponent but without a dot as text.
    if mark and "." not in mantissa:
        return f"YAML reads it as text: write {mantissa}.0e{exponent}"
    return f"write {text.strip()} without quotes"


def _problems_of_fields(type_name: str, kind: Kind, fields: dict[str, Any], path: Path) -> list[Problem]:
    problems = []
    if "q" in fields and fields["q"] <= 0:
        problems.append(Problem((*path, 2), f"q must be greater than 0, not {show(fields['q'])}"))
    if kind.normal:
        problems += _problems_of_bell(kind, fields, path)
    else:
        problems += _problems_of_bounds(type_name, kind, fields, path)
    if not problems and kind.quantised:
        problems += _problems_of_steps(kind, fields, path)
    return problems


def _problems_of_bell(kind: Kind, fields: dict[str, Any], path: Path) -> list[Problem]:
    mu, sigma = fields["mu"], fields["sigma"]
    problems = []
    if sigma <= 0:
        problems.append(Problem((*path, 1), f"sigma must be greater than 0, not {show(sigma)}"))
    if kind.log and abs(mu) > MAX_LOG:
        hint = "mu and sigma are those of the logarithm of the value"
        problems.append(
            Problem((*path, 0), f"mu must be from {-MAX_LOG:g} to {MAX_LOG:g}, not {show(mu)}", hint)
        )
    elif not math.isfinite(abs(float(mu)) + 10 * float(sigma)):
        problems.append(Problem(path, "mu and sigma are too large"))
    return problems


def _problems_of_bounds(type_name: str, kind: Kind, fields: dict[str, Any], path: Path) -> list[Problem]:
    low, high = fields["low"], fields["high"]
    problems = []
    for i, bound in enumerate((low, high) if kind.log else ()):
        if bound <= 0:
            hint = "use a small positive number" if bound == 0 else ""
            problems.append(Problem((*path, i), f"{type_name} needs bounds > 0, not {show(bound)}", hint))
    if low > high:
        message = f"low {show(low)} is greater than high {show(high)}"
        problems.append(Problem(path, message, f"swap them: [{show(high)}, {show(low)}]"))
    elif kind.integer and low == high:
        hint = f"the upper bound is exclusive: write [{low}, {low + 1}] for the one value {low}"
        problems.append(Problem(path, f"{type_name} from {low} to {high} is empty", hint))
    elif not math.isfinite(float(high) - float(low)):
        problems.append(Problem(path, "high - low is too large"))
    return problems


def _problems_of_steps(kind: Kind, fields: dict[str, Any], path: Path) -> list[Problem]:
    q = float(fields["q"])
    if kind.normal and kind.log:
        furthest = math.exp(fields["mu"])
    elif kind.normal:
        furthest = abs(float(fields["mu"])) + float(fields["sigma"])
    else:
        furthest = max(abs(float(fields["low"])), abs(float(fields["high"])))
    # Written as a product, so that a tiny q does not overflow.
    if furthest <= q * MAX_STEPS:
        return []
    return [Problem((*path, 2), f"q {show(fields['q'])} is too small for values up to {furthest:g}")]


def _size(kind: Kind, fields: dict[str, float]) -> int | None:
    if kind.normal:
        return None
    if kind.integer:
        return int(fields["high"] - fields["low"])
    if fields["low"] == fields["high"]:
        return 1
    if not kind.quantised:
        return None
    first, last = grid_range(fields["low"], fields["high"], fields["q"])
    return last - first + 1


def grid_range(low: float, high: float, q: float) -> tuple[int, int]:
    """Return the first and the last k for which `round(x / q) == k` has a probability above 0 on [low, high].

    A bound half-way between two multiples rounds away only in that single point, so it does not count.

    >>> grid_range(2.0, 10.0, 5.0), grid_range(0.5, 2.5, 1.0)
    ((0, 2), (1, 2))
    """
    if low == high:
        return round(low / q), round(low / q)
    first = math.floor(low / q + 0.5 + _TIE)
    return first, max(first, math.ceil(high / q - 0.5 - _TIE))
