"""Schedules in words: how often the parameters of a trial changed, and its steps as the rows of a table."""

from __future__ import annotations

from ..protocol import counted
from ..store.reading import Schedule, ScheduleStep
from .words import parameters_text

SCHEDULE_HEADS = ("after results", "trial", "parameters", "continues from")


def schedule_rows(schedule: Schedule) -> list[tuple[str, str, str, str]]:
    """Return a row of texts for each step: its first result, the trial that made it, parameters, what it copied.

    >>> old = ScheduleStep(begin=0, parameters={"lr": 0.1}, trial=5, first=0)
    >>> new = ScheduleStep(begin=4, parameters={"lr": 0.08}, trial=2, first=4, copied_from=5, copied_at=4)
    >>> for row in schedule_rows(Schedule(sequence_id=2, results=8, steps=[old, new], own=[new], own_results=8)):
    ...     print(row)
    ('0', '5', 'lr=0.1', '')
    ('4', '2', 'lr=0.08', 'the checkpoint of trial 5 after 4 results')
    """
    return [
        (f"{step.begin:,}", str(step.trial), parameters_text(step.parameters), copied_text(step))
        for step in schedule.steps
    ]


def copied_text(step: ScheduleStep) -> str:
    """Return whose checkpoint a step began with; empty if it was the trial's own."""
    if step.copied_from is None:
        return ""
    return f"the checkpoint of trial {step.copied_from} after {counted(step.copied_at or 0, 'result')}"


def changes_of_schedule(changes: int) -> str:
    """Return that the parameters of a trial changed, and how often; empty if they did not.

    >>> changes_of_schedule(1), changes_of_schedule(0)
    ('the parameters changed once while it trained, and these are the last ones', '')
    """
    times = {1: "once", 2: "twice"}.get(changes, f"{changes:,} times")
    return f"the parameters changed {times} while it trained, and these are the last ones" if changes else ""
