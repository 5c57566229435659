"""Changes that users asked for, as JSON: they are committed before they are handled.

So a change is refused only while nothing has happened yet, and one that was accepted is made by the next manager if
this one dies before it has written what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..runner import (
    DataImported,
    Event,
    LimitsChanged,
    SearchSpaceChanged,
    TrialAddRequested,
    TrialKillRequested,
)

__all__ = ["requested_events", "requested_rows"]

_KINDS = (DataImported, LimitsChanged, SearchSpaceChanged, TrialAddRequested, TrialKillRequested)
_BY_NAME: Mapping[str, type[Any]] = {kind.__name__: kind for kind in _KINDS}


def requested_rows(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return events as plain JSON values.

    >>> requested_rows([TrialKillRequested(12.5, "AbCdE")])
    [{'kind': 'TrialKillRequested', 'time': 12.5, 'trial_id': 'AbCdE'}]
    """
    return [{"kind": type(event).__name__, **asdict(event)} for event in events]


def requested_events(rows: Iterable[Mapping[str, Any]]) -> Sequence[Event]:
    """Return the events that `requested_rows` wrote down.

    >>> requested_events(requested_rows([TrialKillRequested(12.5, "AbCdE")]))
    [TrialKillRequested(time=12.5, trial_id='AbCdE')]
    """
    return [_BY_NAME[row["kind"]](**{name: row[name] for name in row if name != "kind"}) for row in rows]
