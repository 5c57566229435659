"""Changes that users asked for, as JSON: they are committed before they are handled.

So a change is refused only while nothing has happened yet, and one that was accepted is made by the next manager if
this one dies before it has written what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..runner import DataImported, Event, LimitsChanged, SearchSpaceChanged, TrialAddAsked, TrialKillAsked

__all__ = ["asked_events", "asked_rows"]

_KINDS = (DataImported, LimitsChanged, SearchSpaceChanged, TrialAddAsked, TrialKillAsked)
_BY_NAME: Mapping[str, type[Any]] = {kind.__name__: kind for kind in _KINDS}


def asked_rows(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return events as plain JSON values.

    >>> asked_rows([TrialKillAsked(12.5, "AbCdE")])
    [{'kind': 'TrialKillAsked', 'time': 12.5, 'trial_id': 'AbCdE'}]
    """
    return [{"kind": type(event).__name__, **asdict(event)} for event in events]


def asked_events(rows: Iterable[Mapping[str, Any]]) -> Sequence[Event]:
    """Return the events that `asked_rows` wrote down.

    >>> asked_events(asked_rows([TrialKillAsked(12.5, "AbCdE")]))
    [TrialKillAsked(time=12.5, trial_id='AbCdE')]
    """
    return [_BY_NAME[row["kind"]](**{name: row[name] for name in row if name != "kind"}) for row in rows]
