"""Numbers, durations, parameters and counts as text for users."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

__all__ = [
    "STATUS_WORDS",
    "closest_text",
    "counts_text",
    "duration_text",
    "flat",
    "left_text",
    "length_text",
    "moment_text",
    "number_text",
    "parameters_text",
    "rate_text",
    "result_text",
]

STATUS_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "RUNNING": "running",
        "WAITING": "waiting",
        "PAUSED": "paused",
        "SUCCEEDED": "succeeded",
        "EARLY_STOPPED": "stopped early",
        "FAILED": "failed",
        "USER_CANCELED": "killed by you",
        "SYS_CANCELED": "cancelled",
    }
)


def number_text(value: object) -> str:
    """Return a number in at most six significant digits; anything else as it is.

    >>> number_text(0.123456789), number_text(64), number_text(1e-7), number_text("relu"), number_text(True)
    ('0.123457', '64', '1e-07', 'relu', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def result_text(value: object) -> str:
    """Return a result as it was reported, a number or JSON, with rounded numbers.

    >>> result_text(0.123456789), result_text({"default": 2 / 3, "note": "ok"})
    ('0.123457', '{"default": 0.666667, "note": "ok"}')
    """
    if isinstance(value, dict | list | str) or value is None:
        return json.dumps(_rounded(value), ensure_ascii=False)
    return number_text(value)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value


def duration_text(seconds: float) -> str:
    """Return a duration, to the second.

    >>> duration_text(0.31), duration_text(42), duration_text(125), duration_text(7384), duration_text(200000)
    ('0.3 s', '42 s', '2 min 05 s', '2 h 03 min', '2 d 7 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def length_text(seconds: float) -> str:
    """Return a duration that a user has set.

    >>> length_text(300), length_text(3600), length_text(90)
    ('5 min', '1 h', '1 min 30 s')
    """
    return duration_text(seconds).removesuffix(" 00 s").removesuffix(" 00 min")


def moment_text(moment: float) -> str:
    """Return a moment (seconds since the epoch) in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def rate_text(rate: float) -> str:
    """Return a throughput in the unit that reads best.

    >>> rate_text(12.5), rate_text(0.5), rate_text(0.001)
    ('12.5 trials/s', '30 trials/min', '3.6 trials/h')
    """
    for unit, seconds in (("s", 1), ("min", 60)):
        if rate * seconds >= 2:
            return f"{rate * seconds:.3g} trials/{unit}"
    return f"{rate * 3600:.3g} trials/h"


def left_text(seconds: float, at_most: bool) -> str:
    """Return the remaining time, as an estimate or as a bound.

    >>> left_text(40, at_most=False), left_text(3600, at_most=True)
    ('about 40 s left', 'at most 1 h 00 min left')
    """
    return f"{'at most' if at_most else 'about'} {duration_text(seconds)} left"


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts that are not zero, in words.

    >>> counts_text({"SUCCEEDED": 12, "FAILED": 1, "RUNNING": 2, "WAITING": 0})
    '2 running, 12 succeeded, 1 failed'
    """
    return ", ".join(
        f"{counts[status]} {word}" for status, word in STATUS_WORDS.items() if counts.get(status)
    )


def flat(value: object, name: str = "") -> dict[str, Any]:
    """Return nested parameters as one level, with dots.

    >>> flat({"lr": 0.1, "solver": {"_name": "sgd", "momentum": 0.9}})
    {'lr': 0.1, 'solver._name': 'sgd', 'solver.momentum': 0.9}
    """
    if not isinstance(value, Mapping) or not value:
        return {name: value} if name else {}
    found: dict[str, Any] = {}
    for key, inner in value.items():
        found |= flat(inner, f"{name}.{key}" if name else str(key))
    return found


def closest_text(sequence_id: int) -> str:
    """Return a sentence for an experiment in which no trial keeps the limits of the objectives.

    >>> closest_text(7)
    'no trial keeps the limits yet (closest: trial 7)'
    """
    return f"no trial keeps the limits yet (closest: trial {sequence_id})"


def parameters_text(parameters: object) -> str:
    """Return parameters on one line; a nested choice is shown by its name.

    >>> parameters_text({"lr": 0.1, "solver": {"_name": "sgd", "momentum": 0.9}})
    'lr=0.1 solver=sgd solver.momentum=0.9'
    """
    if not isinstance(parameters, Mapping):
        return number_text(parameters)
    return " ".join(
        f"{name.removesuffix('._name')}={number_text(value)}" for name, value in flat(parameters).items()
    )
