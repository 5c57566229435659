"""What an agent reports to the manager: five kinds of event, as compact dicts with one builder each.

Every event carries `e` (its kind), `trial` and `attempt`; times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Event", "checkpoint", "ended", "outcome", "problem", "report", "started"]

Event = dict[str, Any]


def started(trial: str, attempt: int, pid: int, time: float) -> Event:
    """Return the event for an attempt whose process runs (a function trial's is the agent's own).

    >>> started("AbCdE", 1, 4711, 12.5)
    {'e': 'started', 'trial': 'AbCdE', 'attempt': 1, 'pid': 4711, 'time': 12.5}
    """
    return {"e": "started", "trial": trial, "attempt": attempt, "pid": pid, "time": time}


def report(trial: str, attempt: int, kind: str, sequence: int, value: str, time: float) -> Event:
    """Return the event for one reported result; `value` is the JSON text of what was reported.

    >>> report("AbCdE", 1, "final", 0, "0.9", 12.5)["value"]
    '0.9'
    """
    return {
        "e": "report",
        "trial": trial,
        "attempt": attempt,
        "kind": kind,
        "sequence": sequence,
        "value": value,
        "time": time,
    }


def checkpoint(trial: str, attempt: int, name: str, sequence: int, value: float | None, time: float) -> Event:
    """Return the event for a saved checkpoint: the trial continues from it with result number `sequence`.

    >>> checkpoint("AbCdE", 1, "1-3", 3, 0.8, 12.5)["name"]
    '1-3'
    """
    return {
        "e": "checkpoint",
        "trial": trial,
        "attempt": attempt,
        "name": name,
        "sequence": sequence,
        "value": value,
        "time": time,
    }


def problem(trial: str, attempt: int, message: str) -> Event:
    """Return the event for something in the spool that cannot be understood.

    >>> problem("AbCdE", 1, "line 3 is not JSON")["message"]
    'line 3 is not JSON'
    """
    return {"e": "problem", "trial": trial, "attempt": attempt, "message": _sendable(message)}


def outcome(
    exit_code: int | None,
    signal: int | None = None,
    error: str | None = None,
    *,
    killed: bool = False,
    paused: bool = False,
    out_of_memory: bool = False,
    time: float,
) -> dict[str, Any]:
    """Return how an attempt ended: the fields of its ended event and of the last line in its spool.

    `out_of_memory` is only present when it is true.

    >>> outcome(0, time=12.5)
    {'exit_code': 0, 'signal': None, 'error': None, 'killed': False, 'paused': False, 'time': 12.5}
    """
    return {
        "exit_code": exit_code,
        "signal": signal,
        "error": None if error is None else _sendable(error),
        "killed": killed,
        "paused": paused,
        "time": time,
        **({"out_of_memory": True} if out_of_memory else {}),
    }


def ended(trial: str, attempt: int, outcome: dict[str, Any]) -> Event:
    """Return the event for an attempt that is over; it follows every report of that attempt.

    >>> ended("AbCdE", 1, outcome(0, time=12.5))["exit_code"]
    0
    """
    return {"e": "ended", "trial": trial, "attempt": attempt, **outcome}


def _sendable(text: str) -> str:
    """Return a text that UTF-8 can encode: users' file names and messages may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")
