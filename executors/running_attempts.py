"""What an agent says, or has left in a spool, as events of the runner."""

from __future__ import annotations

import logging
from pathlib import Path

from ..runner import (
    AttemptEnded,
    AttemptOrder,
    AttemptStarted,
    BadReport,
    CheckpointSaved,
    Event,
    Reported,
)
from ..trial_agent import Ended, Report, Saved, SpoolProblem, Started, read_spool, spool_name
from ..trial_agent import Event as AgentEvent
from .trial_executor import RunSetup

_log = logging.getLogger(__name__)


def spool_path(setup: RunSetup, order: AttemptOrder, node: int = 0) -> Path:
    """Return the file with the reports of an attempt: its own, or that of its agent for function trials.

    The processes on the other nodes of a trial have one of their own.
    """
    if setup.run.is_function:
        return setup.folder / "agents" / f"{order.agent}.jsonl"
    return setup.folder / "trials" / str(order.sequence_id) / spool_name(order.attempt, order.mark, node)


def left_in_spool(setup: RunSetup, order: AttemptOrder) -> list[AgentEvent]:
    """Return the events that the spool of an attempt holds."""
    path = spool_path(setup, order)
    key = order.trial_id, order.attempt, order.first_sequence
    metric, folder = setup.run.keeping.metric, path.parent / "checkpoints"
    # A function's checkpoint is forced to the disk before its name is written; a script's is not.
    unsure = setup.run.synced and not setup.run.is_function
    checkpoints = folder if unsure else None
    try:
        left = read_spool(path, *key, mark=order.mark, metric=metric, checkpoints=checkpoints)
    except FileNotFoundError:
        return []  # nothing was ever reported, or the node with the spool is gone
    except OSError as error:
        _log.warning("the reports of trial %s cannot be read: %s", order.trial_id, error)
        return []
    # On several nodes the first one's end says nothing about the others.
    return left if setup.run.nodes == 1 else [event for event in left if event.e != "ended"]


def runner_event(
    event: Started | Report | Saved | SpoolProblem | Ended, now: float, earliest: float
) -> Event:
    """Return an agent's event as one of the runner's, dated between `earliest` and `now`."""
    time = now if event.e == "problem" else event.time
    if not earliest <= time <= now:
        time = min(now, max(time, earliest))
    trial, attempt = event.trial, event.attempt
    if event.e == "report":  # thousands a second
        return Reported(time, trial, attempt, event.kind, event.sequence, event.value)
    if event.e == "started":
        return AttemptStarted(time, trial, attempt, event.pid)
    if event.e == "checkpoint":
        return CheckpointSaved(
            time, trial, attempt, name=event.name, sequence=event.sequence, value=event.value
        )
    if event.e == "problem":
        return BadReport(time, trial, attempt, event.message, infra=event.infra)
    return AttemptEnded(
        time,
        trial,
        attempt,
        exit_code=event.exit_code,
        signal=event.signal,
        error=event.error,
        paused=event.paused,
        out_of_memory=event.out_of_memory,
        infra=event.infra,
        killed=event.killed,
        exported=event.exported,
        unasked=event.unasked,
    )
