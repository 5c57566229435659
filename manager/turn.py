"""One turn of the loop: take in what has come, commit what it changes, and then act.

The runner handles all events that have come in; what changed is written in one transaction; only then are frames sent
and trials started and stopped. So, whenever a process is killed, what was acted on is in the store, and what is in the
store can be acted on again, because receivers are idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from ..executors import Cursors, ExecutorError, Tasks, TrialExecutor
from ..protocol import Json
from ..runner import (
    AttemptEnded,
    CopyCheckpoint,
    DispatcherAnswered,
    Effect,
    Event,
    ExecutorFailed,
    Finish,
    PauseTrial,
    RecordedEvent,
    RestoreDispatcher,
    SendCommand,
    StartTrial,
    StopTrial,
    Totals,
    TrialRunner,
    TrialStatus,
    recorded,
)
from ..store import NotWritableError, RecordRow, SavedState, Store, StoreError, StoreTick, clone_checkpoint
from .code_warning import CodeWarning
from .disk_space import DiskSpaceGuard
from .dispatcher_link import REPLIES, Command, Dispatcher
from .hooks import Hooks
from .manager_snapshot import ManagerSnapshot
from .timers import ExperimentTimers

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Turn:
    """What one turn has taken in, and what to do once it is committed: commands to the dispatcher, and other effects.

    `cursors` say which of the agents' events are part of it: more may come in before it is committed.
    """

    events: Sequence[Event]
    cursors: Cursors
    effects: Sequence[Effect]
    commands: Sequence[Command]
    tick: StoreTick


class TurnLoop:
    """Collects events, and handles them in turns from `open` on.

    `over` is done when the experiment is, with the failure if one ended it. `observers` are called after each turn.
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        executor: TrialExecutor,
        hooks: Hooks,
        clock: Callable[[], float],
        observers: Sequence[Callable[[], None]],
    ) -> None:
        self.runner: TrialRunner | None = None
        self.disk_space = DiskSpaceGuard(folder, self.guarded, self._schedule)
        self._folder = folder
        self._store = store
        self._executor = executor
        self._hooks = hooks
        self._clock = clock
        self._observers = observers
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._inbox: list[Event] = []
        self._accepted: list[RecordedEvent] = []  # users' requests, committed and not yet handled
        self._last_reply: int | None = None  # the last reply that was handled; None: all were
        self._is_scheduled = False
        self._is_closing = False
        self._runner_may_be_written = True  # what the runner knows is in the store, or will be
        self._tasks = Tasks(self._fail)
        self._dispatcher: Dispatcher
        self.timers: ExperimentTimers
        self._event_log: EventLog | None = None
        self._code_warning = CodeWarning(folder)

    # ------------------------------------------------------------------ opening and closing

    def open(
        self,
        runner: TrialRunner,
        dispatcher: Dispatcher,
        timers: ExperimentTimers,
        snapshot: ManagerSnapshot,
        event_log: EventLog | None = None,
    ) -> None:
        """Begin to take turns."""
        self._event_log = event_log
        self.runner, self._dispatcher, self.timers = runner, dispatcher, timers
        self._last_reply = snapshot.get("heard")
        self._accepted = list(snapshot.get("accepted", []))

    def put_first(self, events: Sequence[Event]) -> None:
        """Put events before those that have come in so far."""
        self._inbox[:0] = events

    def close(self) -> None:
        """Take no more turns."""
        self._is_closing = True
        self.disk_space.close()
        if self.runner is not None:
            self.timers.cancel()
        if self._event_log is not None:
            self._event_log.close()
        self._tasks.cancel()

    @property
    def may_write_end(self) -> bool:
        """Whether the runner's state may be written; if not, the last turn that was written is the end."""
        return self._runner_may_be_written and not self.disk_space.is_awaited

    def commit_last(self) -> None:
        """Commit the last replies of the dispatcher, which are no longer handled."""
        if self.over.done() and self.over.exception() is not None:
            self._commit(())  # what the runner knows may be wrong
            return
        self._dispatcher.unprocessed = 0
        replies, checkpoints = self._dispatcher.take_replies()
        if replies:
            self._last_reply = replies[0][0] - 1
        self._commit((), replies, checkpoints)

    # ------------------------------------------------------------------ what comes in

    def post(self, events: Sequence[Event]) -> None:
        """Take events in, to be handled in the next turn."""
        self._inbox.extend(events)
        if self.runner is not None:
            self._schedule()

    def take_dispatcher_events(self, events: Sequence[Event]) -> None:
        """Take in events of the dispatcher; an empty call says that it has read or done what others may wait for."""
        if events:
            self.post(events)
        elif self.runner is not None:
            self._fetch_more()
            self.look_for_progress()

    def accept(self, events: Sequence[Event], config: str | None) -> None:
        """Commit a user's request, with the canonical `config` that it makes, and put it first in the inbox.

        Raises `StoreError` if it cannot be committed; then nothing changes, neither now nor later.
        """
        if self._is_closing or self.over.done():
            raise StoreError("the experiment is ending")
        if self.disk_space.is_awaited_by(self._inbox):
            self.disk_space.demand()
        accepted = [*self._accepted, *map(recorded, events)]
        self._store.accept(self._snapshot(self.opened_runner, accepted), config)
        # Handled before anything else: the caller has checked them against the present state.
        place = len(self._accepted)
        self._inbox[place:place] = events
        self._accepted = accepted

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine; its failure ends the experiment."""
        self._tasks.start(work)

    def _fail(self, error: Exception) -> None:
        if not self.over.done():
            self.over.set_exception(error)

    # ------------------------------------------------------------------ turns

    @property
    def opened_runner(self) -> TrialRunner:
        """The runner; raises `RuntimeError` before `open`."""
        if self.runner is None:
            raise RuntimeError("the experiment is still starting")
        return self.runner

    def schedule_if_due(self) -> None:
        """Schedule a turn if anything has come in."""
        if self._inbox:
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self.guarded, self.turn)

    def guarded(self, act: Callable[[], None]) -> None:
        """Call a function; its failure ends the experiment."""
        try:
            act()
        except Exception as error:  # noqa: BLE001
            # What the runner knows may be wrong: stop acting, and let `run` raise it.
            self._runner_may_be_written = False
            self._fail(error)

    def settle(self) -> TrialRunner:
        """Commit what is pending and return the runner; raise `NotWritableError` if it cannot be written."""
        self.disk_space.demand()
        if self._inbox:
            self.turn()
        return self.opened_runner

    def turn(self) -> None:
        """Take in what has come, commit it and act on it."""
        self._is_scheduled = False
        if self.over.done() or self._is_closing or self.disk_space.is_awaited_by(self._inbox):
            return
        events, self._inbox, self._accepted = self._inbox, [], []
        cursors = self._executor.take_cursors()
        sent, effects = self._handle(events)
        commands = self._dispatcher.number(sent)
        self._last_reply = None
        tick = self._tick(commands, *self._dispatcher.take_replies())
        turn = Turn(events=events, cursors=cursors, effects=effects, commands=commands, tick=tick)
        self.disk_space.attempt(partial(self._write, tick), partial(self._act, turn))

    def _handle(self, events: Sequence[Event]) -> tuple[list[SendCommand], list[Effect]]:
        """Let the runner handle events; return its commands for the dispatcher, and its other effects.

        Replies to an experiment that ends are kept for a resume.
        """
        sent: list[SendCommand] = []
        others: list[Effect] = []
        runner, is_verbose = self.opened_runner, _log.isEnabledFor(logging.DEBUG)
        for event in self._with_decisions(events):
            if runner.is_ending and isinstance(event, REPLIES):
                self._dispatcher.unprocessed += 1
                continue
            if is_end := isinstance(event, AttemptEnded):
                self.disk_space.explain(event)
            elif isinstance(event, ExecutorFailed):
                # As if the manager had been killed: a resume continues from the store.
                raise ExecutorError(event.reason)
            if self._event_log is not None:
                self._event_log.add(event)
            effects = runner.handle(event)
            for effect in effects:
                if isinstance(effect, SendCommand):
                    sent.append(effect)
                else:
                    others.append(effect)
            if is_end:
                self._log_end(event, runner)
            if is_verbose and effects:
                names = ", ".join(type(effect).__name__ for effect in effects)
                cause = f" (cause: {event.cause})" if event.cause else ""
                _log.debug("%s after %s%s", names, type(event).__name__, cause)
        return sent, others

    def _with_decisions(self, events: Sequence[Event]) -> Iterator[Event]:
        """Yield events; after each, what the stopper decides about the results that it brought."""
        if self._hooks.stopper is None:
            yield from events
            return
        runner, judged = self.opened_runner, 0
        pending = deque(events)
        while pending:
            yield pending.popleft()
            new, judged = runner.new_results[judged:], len(runner.new_results)
            pending.extendleft(reversed(self._hooks.judge(new, self._clock())))
            if not pending:
                pending.extend(self._hooks.end_of_all(self._clock()))

    def _log_end(self, event: AttemptEnded, runner: TrialRunner) -> None:
        """Log the end of a trial that did not succeed."""
        trial = runner.get_trial(event.trial_id)
        if trial is not None and trial.status is not TrialStatus.SUCCEEDED:
            reason = f": {trial.reason}" if trial.reason else ""
            _log.info("trial %d is %s%s", trial.sequence_id, trial.status, reason)

    def _act(self, turn: Turn) -> None:
        """Do what a turn decided, after it is committed."""
        self._executor.confirm(turn.cursors)
        starts = [effect.order for effect in turn.effects if isinstance(effect, StartTrial)]
        if len(starts) == len(turn.effects):
            self._executor.start_together(starts)
        else:
            for effect in turn.effects:
                self.perform(effect)
        self._fetch_more()
        self._dispatcher.write(turn.commands)
        self._hooks.after(turn.tick.changes, turn.events)
        if turn.tick.changes.code and self._store.has_several_codes():
            self._tasks.start(self._code_warning.log())
        self.timers.set()
        for observer in self._observers:
            observer()
        self.look_for_progress()

    def perform(self, effect: Effect) -> None:
        """Perform a committed effect; twice is harmless."""
        if isinstance(effect, StartTrial):
            self._executor.start_trial(effect.order)
        elif isinstance(effect, StopTrial):
            self._executor.stop_trial(effect.trial_id, effect.attempt)
        elif isinstance(effect, PauseTrial):
            self._executor.pause_trial(effect.trial_id, effect.attempt)
        elif isinstance(effect, CopyCheckpoint):
            if not self._executor.has_virtual_clock:  # simulated trials have no files
                root = self._folder if self._store.survives_power_cut else None
                clone_checkpoint(self._folder / effect.source, self._folder / effect.target, root)
        elif isinstance(effect, RestoreDispatcher):
            self._tasks.start(self._restore_dispatcher(effect))
        elif isinstance(effect, Finish):
            self.over.set_result(None)

    def look_for_progress(self) -> None:
        """Notify the executor, or the runner, when all events are handled and the dispatcher owes no reply."""
        if self.runner is None or self._inbox or self.over.done():
            return
        is_stalled = self.runner.is_stalled
        if not (is_stalled or self._executor.has_virtual_clock):
            return
        self._dispatcher.flush()
        if not self._dispatcher.has_answered_all:
            return
        if is_stalled:
            self.post([DispatcherAnswered(self._clock(), cause="dispatcher")])
        else:
            self._executor.on_idle(self.timers.next_deadline())

    def _fetch_more(self) -> None:
        """Acknowledge committed reports, so that agents send more, unless the dispatcher has enough to read."""
        if not self._dispatcher.is_full:
            self._executor.acknowledge()

    async def _restore_dispatcher(self, effect: RestoreDispatcher) -> None:
        if effect.from_results:
            await self._dispatcher.begin_record(effect.reason, self.settle)
        else:
            await self._dispatcher.restore(effect.reason)

    # ------------------------------------------------------------------ the store

    def send_first(self, command: SendCommand) -> None:
        """Commit and send a command that follows from no event."""
        numbered = self._dispatcher.number([command])
        self._commit(numbered)
        self._dispatcher.write(numbered)

    def _commit(
        self,
        commands: Sequence[Command],
        replies: Sequence[RecordRow] = (),
        checkpoints: Sequence[SavedState] = (),
    ) -> None:
        try:
            self._write(self._tick(commands, replies, checkpoints))
        except StoreError:
            self._runner_may_be_written = False
            raise

    def _tick(
        self, commands: Sequence[Command], replies: Sequence[RecordRow], checkpoints: Sequence[SavedState]
    ) -> StoreTick:
        """Return everything to commit."""
        runner = self.opened_runner
        now = self._clock()
        return StoreTick(
            changes=runner.take_changes(),
            commands=[command.record() for command in commands],
            replies=replies,
            status=str(runner.status),
            reason=runner.reason,
            error=runner.error,
            run_time=runner.elapsed(now),
            end_time=now if runner.is_finished() else None,
            snapshot=self._snapshot(runner, self._accepted),
            dispatcher_checkpoints=checkpoints,
        )

    def _write(self, tick: StoreTick) -> None:
        self._store.commit(tick)
        if tick.dispatcher_checkpoints:
            with contextlib.suppress(NotWritableError):  # a later turn prunes them
                self._dispatcher.prune_checkpoints()

    def _snapshot(self, runner: TrialRunner, accepted: Sequence[RecordedEvent]) -> str:
        own: ManagerSnapshot = {}
        if self._last_reply is not None:
            own["heard"] = self._last_reply
        if accepted:
            own["accepted"] = accepted
        if self._event_log is not None:
            own["recorded"] = self._event_log.size
        return orjson.dumps({**runner.snapshot(), **own}, option=orjson.OPT_NON_STR_KEYS).decode()


class EventLog:
    """`logs/events.jsonl`: what happened to an experiment, in full, so that it can be replayed.

    A line is an event as `recorded` writes it, in the order in which the runner handled them. Each manager begins with
    a line of the kind `Begin`: how it found the experiment. The file's size at the last commit is `recorded` in the
    snapshot that it found; what an earlier manager wrote after that was never committed, and a replay leaves it out. A
    file that can no longer be written is logged once and left as it is.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "logs" / "events.jsonl").open("ab", buffering=0)
        self.size = self._file.tell()

    def begin(self, runner: TrialRunner, totals: Totals, snapshot: Mapping[str, Json], now: float) -> None:
        """Note how a manager found the experiment."""
        limits, run_time = asdict(runner.limits), runner.elapsed(now)
        begin = {"kind": "Begin", "time": now, "snapshot": snapshot, "run_time": run_time, "limits": limits}
        self._write({**begin, "totals": asdict(totals)})

    def add(self, event: Event) -> None:
        """Note an event that is about to be handled."""
        self._write(recorded(event))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, row: Mapping[str, object]) -> None:
        if self._file.closed:
            return
        try:
            self.size += self._file.write(json.dumps(row).encode() + b"\n")
        except OSError as error:
            _log.error("events are no longer recorded: %s", error)
            self._file.close()
