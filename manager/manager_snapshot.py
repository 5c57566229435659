"""What a manager leaves in the snapshot of the store for the next one, next to that of the runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from ..runner import RecordedEvent


class ManagerSnapshot(TypedDict, total=False):
    """Plain JSON values, in one object with those of `RunnerSnapshot`."""

    heard: int  # the number of the last reply of the dispatcher that was handled; missing: all were
    accepted: Sequence[RecordedEvent]  # users' requests that are committed and not yet handled
    recorded: int  # the size of `logs/events.jsonl`, if events are recorded
