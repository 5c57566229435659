"""The checkpoints of the dispatcher: when one is whole, where it is, and which one is used next."""

from __future__ import annotations

import logging
from pathlib import Path

from ...store import QUEUES, SavedState, Store, discard

_log = logging.getLogger(__name__)


class DispatcherCheckpoints:
    """The checkpoints of one experiment's dispatcher, as files in `folder` and rows in the store.

    The dispatcher first announces the half of each queue, at a place among its replies, and then the whole file. A
    checkpoint is valid once that announcement is committed, with all replies before it: until then it is in `take`.
    """

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._new: list[SavedState] = []
        # By queue: the command after which it saved its state, and its last reply then.
        self._halves: dict[str, tuple[int, int]] = {}

    def note_half(self, queue: str, n: int, last_reply: int) -> None:
        """Note that a queue has saved its state after command `n`, when `last_reply` was its last reply."""
        self._halves[queue] = n, last_reply

    def note_whole(self, n: int, path: str) -> None:
        """Note that a file with both halves is written; one without them is of no use."""
        if all(self._halves.get(queue, (0, 0))[0] == n for queue in QUEUES):
            default, assessor = (self._halves[queue][1] for queue in QUEUES)
            self._new.append(SavedState(n, path, default, assessor))

    def take(self) -> list[SavedState]:
        """Return the checkpoints since the last call, to be committed."""
        checkpoints, self._new = self._new, []
        return checkpoints

    def forget_new(self) -> None:
        """Forget what is not committed: it is of a process that is replaced."""
        self._halves.clear()
        self._new.clear()

    def last(self) -> SavedState | None:
        """Return the last valid checkpoint whose file exists."""
        while (saved := self._store.dispatcher_checkpoint()) is not None:
            if self.path(saved).is_file():
                return saved
            _log.warning("the dispatcher's checkpoint %s is missing", saved.path)
            self.forget(saved)
        return None

    def path(self, saved: SavedState) -> Path:
        """Return the file of a checkpoint."""
        return self._folder / saved.path

    def forget(self, saved: SavedState) -> None:
        """Use a checkpoint no more."""
        self._store.drop_dispatcher_checkpoint(saved)
        discard(self.path(saved))

    def forget_all(self) -> None:
        """No longer use any checkpoint."""
        while (saved := self._store.dispatcher_checkpoint()) is not None:
            self.forget(saved)

    def prune(self) -> None:
        """Delete the older ones."""
        for path in self._store.prune_dispatcher_checkpoints():
            discard(self._folder / path)
