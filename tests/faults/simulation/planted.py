"""Faults that are planted in the product, to see that the simulation finds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["PLANTED"]


def _grant_before_the_commit() -> None:
    """Reply to a user before the request is committed."""
    from pitchpipe.manager.manager import Manager

    def apply(self: Any, events: Sequence[Any], config: Any = None) -> None:
        self._open_loop.post(events)
        self.config = config or self.config

    Manager.apply = apply  # type: ignore[method-assign]


def _acknowledge_before_the_commit() -> None:
    """Let agents forget events when they have come, and not when they are committed."""
    from pitchpipe.executors.agents import AgentTrialExecutor

    take = AgentTrialExecutor.take_cursors

    def take_cursors(self: Any) -> Any:
        cursors = take(self)
        self.confirm(cursors)
        self.acknowledge()
        return cursors

    AgentTrialExecutor.take_cursors = take_cursors  # type: ignore[method-assign]


def _count_attempts_wrongly() -> None:
    """Mark the results of the attempt before the lost one as those that no longer count."""
    from pitchpipe.runner import attempts

    rewind = attempts.rewind

    def off_by_one(trial: Any) -> Any:
        lost = rewind(trial)
        return lost and (lost[0], lost[1] - 1, lost[2])

    attempts.rewind = off_by_one


def _forget_before_the_acknowledgement() -> None:
    """Let an agent forget events as soon as they are sent."""
    from pitchpipe.trial_agent.agent_events import Outbox

    take = Outbox.take

    def take_and_forget(self: Any, after: int) -> Any:
        batch, sent = take(self, after)
        self._acknowledge(sent)
        return batch, sent

    Outbox.take = take_and_forget  # type: ignore[method-assign]


def _report_before_it_is_written() -> None:
    """Let a report return before its line is in the file; the next one writes it."""
    from pitchpipe.sdk.line_file import LineFile

    append = LineFile.append
    late: dict[int, str] = {}

    def append_later(self: Any, line: str) -> None:
        if (before := late.pop(id(self), None)) is not None:
            append(self, before)
        if '"intermediate"' in line:
            late[id(self)] = line
        else:
            append(self, line)

    LineFile.append = append_later  # type: ignore[method-assign]


PLANTED: dict[str, Callable[[], None]] = {
    "granted-early": _grant_before_the_commit,
    "acknowledged-early": _acknowledge_before_the_commit,
    "attempt-off-by-one": _count_attempts_wrongly,
    "forgotten-early": _forget_before_the_acknowledgement,
    "written-late": _report_before_it_is_written,
}
