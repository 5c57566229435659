"""How often a failed dispatcher is brought back: after a plug-in raised, once; after a death, a second time."""

from __future__ import annotations

from .events import DispatcherFailed

__all__ = ["MOST_DEATHS", "DispatcherFailures"]

MOST_DEATHS = 3
"""So many deaths in a row, without a command done in between that was never done before, are the last."""


class DispatcherFailures:
    """Judges the failures of one experiment's dispatcher, in the order in which they come.

    A plug-in that raises is tried once more at the same command. A process that ends by itself, is killed or is silent
    may have met a passing trouble (no memory, somebody's `kill`), so it is tried more often.
    """

    def __init__(self) -> None:
        self._raised_at: int | None = None
        self._died_at = -1  # the furthest command at which it did
        self._deaths = 0

    def verdict(self, failure: DispatcherFailed) -> str:
        """Why it is not brought back any more, as a sentence; empty if it is.

        >>> failures = DispatcherFailures()
        >>> raised = DispatcherFailed(0.0, "the tuner raised ValueError: no", "t.py:3", command=7)
        >>> failures.verdict(raised), failures.verdict(raised)
        ('', 'the tuner raised ValueError: no (t.py:3)')
        """
        told = f"{failure.message} ({failure.where})" if failure.where else failure.message
        command = -1 if failure.command is None else failure.command
        if not failure.died:
            is_repeated, self._raised_at = self._raised_at == command, command
            return told if is_repeated else ""
        self._deaths = 1 if command > self._died_at else self._deaths + 1
        self._died_at = max(command, self._died_at)
        if self._deaths < MOST_DEATHS:
            return ""
        return (
            f"{told}, {self._deaths} times in a row at command {self._died_at}: "
            "see logs/dispatcher.log and logs/dispatcher.out; a resume tries again"
        )
