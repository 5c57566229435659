"""What counts as a metric: the number in the report of a trial."""

from __future__ import annotations

import math
from numbers import Real
from reprlib import repr as short_repr
from typing import Any

from .errors import MetricError

_MOST_NAMES = 5  # in a message


def metric_value(value: Any, key: str = "default") -> float:
    """Return the number in a report: the report itself, or what a dict holds under `key` (the objective's name).

    NaN and the infinities are numbers; callers decide what they mean. Raise `MetricError` with a sentence.

    >>> metric_value({"default": 0.91, "loss": 0.3})
    0.91
    >>> metric_value({"default": 0.91, "loss": 0.3}, key="loss")
    0.3
    >>> metric_value("high")
    Traceback (most recent call last):
        ...
    pitchpipe.protocol.errors.MetricError: reported 'high', which is not a number
    """
    if not isinstance(value, dict):
        return _number(value, "")
    if key not in value:
        raise MetricError(f"reported a dict without {key!r}{_names_in(value, key)}")
    return _number(value[key], f" under {key!r}")


def number_in(value: Any, key: str = "default") -> float:
    """Return what `metric_value` does, or NaN where that raises.

    >>> number_in({"default": 0.91}), number_in("high"), number_in(10**400)
    (0.91, nan, nan)
    """
    try:
        return metric_value(value, key)
    except MetricError:
        return math.nan


def scalar_item(scalar: Any) -> Any:
    """Return the plain value in a scalar of numpy or torch, or in an array without axes; NaN in place of a masked one.

    >>> import numpy as np
    >>> scalar_item(np.float32(0.5)), scalar_item(np.longdouble(0.5)), scalar_item(np.ma.masked)
    (0.5, 0.5, nan)
    """
    if not hasattr(scalar, "item"):
        return scalar
    if getattr(scalar, "mask", False):  # its item is 0.0
        return math.nan
    item = scalar.item()
    is_own_item = isinstance(item, Real) and not isinstance(item, int | float)  # as a longdouble is
    return float(item) if is_own_item else item


def with_default(report: Any, name: str) -> Any:
    """Return a report whose metric `name` is also called `default`, for plug-ins that know no other name.

    >>> with_default({"loss": 0.3}, "loss")
    {'loss': 0.3, 'default': 0.3}
    """
    if name == "default" or not isinstance(report, dict) or name not in report:
        return report
    return {**report, "default": report[name]}


def names_of(report: dict[Any, Any]) -> str:
    """Return the first names in a report, for a message.

    >>> names_of({"loss": 0.3, "accuracy": 0.9})
    "'loss', 'accuracy'"
    """
    return ", ".join(map(repr, list(report)[:_MOST_NAMES]))


def _names_in(value: dict[Any, Any], key: str) -> str:
    if not value:
        return ""
    named = f"metric={next(iter(value))!r} in Python, objectives in experiment.yml"
    return f": it has {names_of(value)}; report {key!r}, or name the objective: {named}"


def _number(value: Any, where: str) -> float:
    number = scalar_item(value) if getattr(value, "shape", None) == () else value
    if not isinstance(number, int | float):
        raise MetricError(f"reported {short_repr(value)}{where}, which is not a number")
    try:
        return float(number)
    except OverflowError:
        raise MetricError(f"reported an integer{where} that is too large for a float") from None
