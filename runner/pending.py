"""What the runner has decided and the manager has not yet done: effects to perform, changes to commit."""

from __future__ import annotations

from ..protocol import CommandType
from .changes import Changes
from .effects import Effect, SendCommand
from .trial import Trial


class Pending:
    """Collects the effects and the changes of all parts of the runner.

    `now` is the time of the present event.
    """

    __slots__ = ("changes", "effects", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.effects: list[Effect] = []
        self.changes = Changes()

    def send(self, command: CommandType, payload: str, *, is_periodical: bool = False) -> None:
        """Add a command for the dispatcher to the effects."""
        self.effects.append(SendCommand(command, payload, is_periodical))

    def note(self, trial: Trial) -> None:
        """Add a trial to the next commit."""
        self.changes.trials[trial.trial_id] = trial

    def take_changes(self) -> Changes:
        """Return what has changed since the last call."""
        changes, self.changes = self.changes, Changes()
        return changes
