"""The limits of an experiment as text fields: their texts, and the changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...config import UnitError, parse_duration

__all__ = ["LIMITS", "Limit", "changes_of"]

_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit that can be changed; an empty field removes it if it `may_be_empty`."""

    name: str
    label: str
    hint: str
    is_duration: bool = False
    may_be_empty: bool = True

    def text(self, value: float | None) -> str:
        """Return the text of a value in the field.

        >>> [LIMITS[1].text(seconds) for seconds in (None, 5400, 7200.0, 90)]
        ['', '90m', '2h', '90s']
        """
        if value is None:
            return ""
        if not self.is_duration:
            return str(value)
        for unit, seconds in _UNITS:
            if value % seconds == 0:
                return f"{value // seconds:.0f}{unit}"
        return f"{value:g}s"

    def value(self, text: str) -> Any:
        """Return the value of a text for the manager; raise `ValueError` with a sentence if it is invalid."""
        if not text:
            if not self.may_be_empty:
                raise ValueError(f"{self.label} cannot be empty")
            return None
        if self.is_duration:
            return self._seconds(text)
        if not text.isdecimal() or not int(text):
            raise ValueError(f"{self.label} must be a whole number from 1 on, not '{text}'")
        return int(text)

    def _seconds(self, text: str) -> float:
        try:
            seconds = float(text) if text.replace(".", "", 1).isdecimal() else parse_duration(text)
        except UnitError:
            seconds = 0.0
        if not seconds > 0:
            raise ValueError(f"{self.label} must be a time such as 90m, 12h or 2d, not '{text}'")
        return seconds


LIMITS = (
    Limit(
        name="max_trial_number",
        label="Number of trials",
        hint="No new trials after this many; empty: no limit",
    ),
    Limit(
        name="max_experiment_duration",
        label="Duration of the experiment",
        hint="Such as 90m, 12h or 2d, from its start; empty: no limit",
        is_duration=True,
    ),
    Limit(
        name="trial_concurrency",
        label="Trials at a time",
        hint="How many trials run at once",
        may_be_empty=False,
    ),
)


def changes_of(typed: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, Any]:
    """Return what differs from the stored limits; raise `ValueError` with the first problem.

    >>> changes_of({"max_trial_number": "20", "trial_concurrency": "2"}, {"trial_concurrency": "2"})
    {'max_trial_number': 20}
    """
    return {
        limit.name: limit.value(typed[limit.name])
        for limit in LIMITS
        if limit.name in typed and typed[limit.name] != stored.get(limit.name, "")
    }
