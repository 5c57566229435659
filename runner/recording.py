"""Events as plain JSON values, and a runner that goes through recorded events again.

The manager commits users' requests in this form before it handles them: a request is refused only while nothing has
happened, and the next manager carries out an accepted one if this one dies. A replay of all events of an experiment
gives the same trials, changes and effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from . import events
from .effects import Effect
from .events import Event, TotalsChanged
from .ledger import Totals
from .trial_runner import TrialRunner

_KINDS: Mapping[str, type[Any]] = {
    name: kind for name, kind in vars(events).items() if isinstance(kind, type) and issubclass(kind, Event)
}
_TUPLES = ("devices", "busy_devices", "any_results")  # fields that JSON holds as lists


def recorded(event: Event) -> dict[str, Any]:
    """Return an event as plain JSON values.

    >>> from .events import TrialKillRequested
    >>> recorded(TrialKillRequested(12.5, "AbCdE", cause="user: kill"))
    {'kind': 'TrialKillRequested', 'event': {'time': 12.5, 'cause': 'user: kill', 'trial_id': 'AbCdE'}}
    """
    return {"kind": type(event).__name__, "event": asdict(event)}


def event_of(row: Mapping[str, Any]) -> Event:
    """Return the event of a row that `recorded` returned.

    >>> event_of({"kind": "TrialKillRequested", "event": {"time": 12.5, "trial_id": "AbCdE"}})
    TrialKillRequested(time=12.5, trial_id='AbCdE')
    """
    kind, values = _KINDS[row["kind"]], _with_tuples(row["event"])
    if kind is TotalsChanged:
        values["totals"] = Totals(**_with_tuples(values["totals"]))
    return kind(**values)


def replay(rows: Iterable[Mapping[str, Any]], runner: TrialRunner) -> list[Effect]:
    """Have a runner in the state in which the recording began handle its events; return their effects."""
    return [effect for row in rows for effect in runner.handle(event_of(row))]


def _with_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if name in _TUPLES else value for name, value in values.items()}
