"""Restores the dispatcher after a failure: from a checkpoint, from the record, or from the results alone."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from ...protocol import CommandType
from ...runner import Event, RecordBegun, SendCommand, TrialRunner
from ...store import DispatcherRecord, RecordRow, SavedState, Store
from .history import history_of, user_imports
from .session import DispatcherSession, DispatcherSetup

_log = logging.getLogger(__name__)


class Owner(Protocol):
    """What a dispatcher needs of the manager's loop."""

    def post(self, events: Sequence[Event]) -> None:
        """Take events in."""
        ...

    def look_for_progress(self) -> None:
        """Find out whether the dispatcher has replied to everything."""
        ...

    def acknowledge(self) -> None:
        """Continue to fetch reports."""
        ...

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine; its failure ends the experiment."""
        ...

    async def until_open(self) -> None:
        """Wait until the experiment is open."""
        ...

    def settle(self) -> TrialRunner:
        """Commit what is pending and return the runner; raise `NotWritableError` if it cannot be written."""
        ...


class Dispatcher:
    """The experiment's dispatcher: its session, and what restores it.

    `unprocessed` counts the last replies that had no effect because the experiment was ending.
    """

    def __init__(
        self,
        setup: DispatcherSetup,
        store: Store,
        search_space: Callable[[], Mapping[str, Any] | None],
        owner: Owner,
    ) -> None:
        self.session = DispatcherSession(setup, self)
        self.unprocessed = 0
        self._checkpoints = setup.folder / "checkpoint"
        self._clock = setup.clock
        self._store = store
        self._search_space = search_space
        self._owner = owner

    async def start(self) -> None:
        """Start it and send it the record."""
        await self.session.start(self._store.dispatcher_record, self._saved_state())

    def restore(self, reason: str) -> None:
        """Replace the process by one that gets the last checkpoint and the record since then."""
        _log.warning("restoring the dispatcher: %s", reason)
        self._owner.start_task(self.session.restart(self._store.dispatcher_record, self._saved_state()))

    def take_said(self) -> tuple[Sequence[RecordRow], Sequence[SavedState]]:
        """Return the replies that had their effect, and the checkpoints, to be committed."""
        replies = self.session.take_replies(keep=self.unprocessed)
        return replies, () if self.unprocessed else self.session.take_checkpoints()

    def initialize(self) -> SendCommand:
        """Return the first command of a record."""
        return SendCommand(CommandType.Initialize, json.dumps(self._search_space()))

    def prune_checkpoints(self) -> None:
        """Delete the older checkpoints."""
        for path in self._store.prune_dispatcher_checkpoints():
            (self._checkpoints / path).unlink(missing_ok=True)

    # ------------------------------------------------------------------ what the session reports

    def on_event(self, event: Event) -> None:
        """Hand an event to the loop."""
        self._owner.post([event])

    def on_progress(self) -> None:
        """Hand progress to the loop."""
        self._owner.look_for_progress()

    def on_drained(self) -> None:
        """Let reports be fetched again."""
        self._owner.acknowledge()

    def on_divergence(self, why: str) -> None:
        """Begin a new record: the tuner is not reproducible, so a new one gets only the results so far."""
        _log.warning("the tuner is not reproducible (%s): a new one starts and gets all results so far", why)
        self._owner.start_task(self._begin_new_record())

    def on_unusable(self, saved: SavedState, why: str) -> None:
        """Restore from the checkpoint before it, or from the whole record."""
        _log.warning("the dispatcher's checkpoint %s is left aside: %s", saved.path, why)
        self._forget(saved)
        last = self._saved_state()
        since = "all recorded commands" if last is None else f"the commands since checkpoint {last.path}"
        self.restore(f"it receives {since} again")

    def on_doubt(self, saved: SavedState, why: str) -> None:
        """Leave all checkpoints aside: those after this one continue it, and those before were written like it."""
        _log.warning("%s; it was restored from %s, so its checkpoints are left aside", why, saved.path)
        while (one := self._store.dispatcher_checkpoint()) is not None:
            self._forget(one)

    # ------------------------------------------------------------------ records and checkpoints

    async def _begin_new_record(self) -> None:
        await self._owner.until_open()
        await self.session.restart(self._new_record, mode="resume")

    def _new_record(self, _saved: SavedState | None) -> DispatcherRecord:
        """Replace the record by one that only holds the results so far."""
        self._owner.post([RecordBegun(self._clock(), cause="dispatcher")])
        runner = self._owner.settle()
        first = [self.initialize(), *history_of(runner)]
        first += user_imports(self._store.commands(), runner.results())
        if runner.requested:
            first.append(SendCommand(CommandType.RequestTrialJobs, str(runner.requested)))
        records = [(n, sent.command.code, sent.payload) for n, sent in enumerate(first, start=1)]
        self.session.take_replies()
        self.unprocessed = 0
        self._store.begin_dispatcher_record(records)
        return DispatcherRecord(records)

    def _saved_state(self) -> SavedState | None:
        """Return the last checkpoint whose file exists."""
        while (saved := self._store.dispatcher_checkpoint()) is not None:
            if (self._checkpoints / saved.path).is_file():
                return saved
            _log.warning("the dispatcher's checkpoint %s is missing", saved.path)
            self._forget(saved)
        return None

    def _forget(self, saved: SavedState) -> None:
        self._store.drop_dispatcher_checkpoint(saved)
        (self._checkpoints / saved.path).unlink(missing_ok=True)
