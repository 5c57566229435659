"""How far the two queues of the dispatcher have come: what each was sent, and what it has done."""

from __future__ import annotations

from ...protocol import CommandType
from ...store import QUEUES
from .numbered_commands import Command


class QueueProgress:
    """The last command that went to each queue, and the last one that it has done.

    All commands but intermediate results go to the default queue, the end of a trial to both. Intermediate results go
    to `periodical_queues`; without an assessor, its queue is not among them and gets nothing.

    >>> progress = QueueProgress()
    >>> progress.note_sent(Command(1, CommandType.RequestTrialJobs, "1"))
    >>> progress.is_complete, progress.first_undone(1)
    (False, 1)
    >>> progress.note_done("default", 1)
    >>> progress.is_complete, progress.first_undone(1)
    (True, 2)
    """

    def __init__(self) -> None:
        self.periodical_queues: tuple[str, ...] = ("assessor",)
        self.restart(0)

    def restart(self, covered: int) -> None:
        """Begin again with a process that has done the first `covered` commands."""
        self._done: dict[str, int] = dict.fromkeys(QUEUES, covered)
        # The last command of each kind: intermediate results, the end of a trial, and all but intermediate results.
        self._last_periodical, self._last_end, self._last_other = 0, covered, covered

    def note_sent(self, command: Command) -> None:
        """Note which queues a command goes to."""
        if command.is_periodical:
            self._last_periodical = command.n
            return
        self._last_other = command.n
        if command.type is CommandType.TrialEnd:
            self._last_end = command.n

    def note_done(self, queue: str, n: int) -> None:
        """Note that a queue has done everything up to command `n`, and that its replies are here."""
        self._done[queue] = n

    @property
    def is_complete(self) -> bool:
        """Whether both queues have done everything that they were sent."""
        return all(self._done[queue] >= self._last_of(queue) for queue in QUEUES)

    def is_still_at(self, n: int) -> bool:
        """Return whether no queue has done anything after command `n`."""
        return all(done == n for done in self._done.values())

    def first_undone(self, last: int) -> int:
        """Return the number of the first command that a queue has not done; the one after `last` if all are done."""
        late = [self._done[queue] for queue in QUEUES if self._done[queue] < self._last_of(queue)]
        return min(late, default=last) + 1

    def _last_of(self, queue: str) -> int:
        """Return the number of the last command that went to a queue; 0 for the queue of a missing assessor."""
        last = self._last_other if queue == "default" else self._last_end
        if queue in self.periodical_queues:
            return max(last, self._last_periodical)
        return last if queue == "default" else 0
