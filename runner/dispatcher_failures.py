"""How often a failed dispatcher is restored: once if a plug-in raises at one command, twice if the process dies."""

from __future__ import annotations

from .events import DispatcherFailed

MOST_DEATHS = 3
"""After this many deaths in a row, without a new command handled in between, it is not restored any more."""


class DispatcherFailures:
    """Judges the failures of one experiment's dispatcher, in the order in which they come.

    If a plug-in raises, the same command is tried once more. If the process ends by itself, is killed or is silent, the
    reason may be temporary (no memory, a `kill` by hand), so it is tried more often.
    """

    def __init__(self) -> None:
        self._raised_at: int | None = None
        self._died_at = -1  # the highest number of a command at which it did
        self._deaths = 0

    def verdict(self, failure: DispatcherFailed) -> str:
        """Return why the dispatcher is not restored any more, as a sentence; an empty text if it is.

        >>> failures = DispatcherFailures()
        >>> raised = DispatcherFailed(0.0, message="the tuner raised ValueError: no", where="t.py:3", command=7)
        >>> failures.verdict(raised), failures.verdict(raised)
        ('', 'the tuner raised ValueError: no (t.py:3)')
        """
        command = -1 if failure.command is None else failure.command
        if not failure.died:
            is_repeated, self._raised_at = self._raised_at == command, command
            return failure.reason if is_repeated else ""
        self._deaths = 1 if command > self._died_at else self._deaths + 1
        self._died_at = max(command, self._died_at)
        if self._deaths < MOST_DEATHS:
            return ""
        return (
            f"{failure.reason}, {self._deaths} times in a row at command {self._died_at}: "
            "see logs/dispatcher.log and logs/dispatcher.out; a resume tries again"
        )
