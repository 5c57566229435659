"""What a changed limit or search space has to be, whether a verb, the API, a page or a program asks for it.

The models of the config are lenient, as YAML needs it: they accept "9" and true as numbers. A change comes from a
program or a form, where those are mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...config import UnitError, parse_duration, shown
from ...search_space import non_finite

__all__ = ["problems_of"]

_MOST_TRIALS = 2**53 - 1
_MOST_AT_ONCE = 1_000_000
_LONGEST = 1e12


def problems_of(changes: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with changed limits or a changed search space, as sentences; None lifts a limit.

    >>> problems_of({"max_trial_number": "9", "trial_concurrency": 4})
    ['max_trial_number must be a whole number from 1 to 9007199254740991, not "9"']
    """
    return [problem for name, value in changes.items() if value is not None for problem in _of(name, value)]


def _of(name: str, value: Any) -> Iterator[str]:
    if name == "max_trial_number":
        yield from _of_count(name, value, _MOST_TRIALS)
    elif name == "trial_concurrency":
        yield from _of_count(name, value, _MOST_AT_ONCE)
    elif name == "max_experiment_duration":
        yield from _of_duration(name, value)
    elif name != "search_space":
        raise LookupError(f"{name} has no check: write it here")
    elif not isinstance(value, Mapping) or not value:
        yield 'search_space must be an object with at least one parameter, such as {"lr": {...}}'
    else:
        yield from map(str, non_finite(value, (name,)))


def _of_count(name: str, value: Any, most: int) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        yield f"{name} must be a whole number from 1 to {most}, not {shown(value)}"


def _of_duration(name: str, value: Any) -> Iterator[str]:
    try:
        seconds = parse_duration(value)
    except UnitError as error:
        yield f"{name}: {error.with_hint()}"
        return
    if not 0 < seconds < _LONGEST:
        yield f"{name} must be more than 0 s and less than {_LONGEST:g} s, not {shown(value)}"
