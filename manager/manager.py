"""The shell around `TrialRunner`: one event loop that collects events, commits, and then acts.

A turn of the loop (`step`) takes every event that has come in, lets the runner handle them, writes what changed in
one transaction, and only then sends frames, starts and stops trials. So whatever process is killed, whenever: what
was acted upon is in the store, and what is in the store can be acted upon again, because receivers are idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from ..config import ExperimentConfig
from ..executors import Cursors, ExecutorError, RunSetup, TrialExecutor
from ..protocol import CommandType, Frame
from ..runner import (
    AttemptEnded,
    Cause,
    CopyCheckpoint,
    DispatcherAnswered,
    Effect,
    Event,
    ExecutorFailed,
    ExperimentStatus,
    Finish,
    Ledger,
    PauseTrial,
    RestoreDispatcher,
    SendCommand,
    StartTrial,
    StopRequested,
    StopTrial,
    Tick,
    TrialRunner,
    added_trial,
    event_of,
    recorded,
    troubles_of,
)
from ..store import (
    Conversation,
    ExperimentFolder,
    Mirror,
    NoRoomError,
    Record,
    Room,
    SavedState,
    Store,
    StoreError,
    clone_checkpoint,
)
from ..store import Tick as StoreTick
from .dispatcher_link import REPLIES, DispatcherSession, DispatcherSetup, history_of, meaning_of, user_imports
from .hooks import Listeners, committed_results, experiment_row
from .settings import agent_timeout_of, limits_of, objectives_of, request_of, run_of

__all__ = ["Manager"]

_log = logging.getLogger(__name__)

# How long a dispatcher may take to come to a command boundary when it is told to end, and to end.
_TERMINATE_TIMEOUT = 7.0
# A trial that is still there so long after its grace is given up: its agent is ended, too.
_STOP_MARGIN = 2.0


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one turn of the loop has taken in, and what is to be done once it is committed.

    `cursors` say how far the agents' events are in it: more may come in before it is committed.
    """

    events: Sequence[Event]
    cursors: Cursors
    effects: Sequence[Effect]
    commands: Sequence[Record]
    tick: StoreTick


class Manager:
    """Runs one experiment from its store to its end.

    `clock` gives seconds since the epoch. Whoever wants to watch reads `runner`; `on_tick` is called after every turn.
    `first_events` says what shall happen before anything else, once it is known where the experiment stands.
    """

    def __init__(
        self,
        folder: ExperimentFolder,
        config: ExperimentConfig,
        store: Store,
        executor: TrialExecutor,
        clock: Callable[[], float],
        dispatcher_command: Sequence[str] | None = None,
    ) -> None:
        self.folder = folder
        self.config = config
        self.store = store
        self.executor = executor
        self.runner: TrialRunner | None = None
        self.on_tick: Callable[[], None] = lambda: None
        self.listeners = Listeners()
        self.first_events: Callable[[TrialRunner, float], Iterable[Event]] = lambda runner, now: ()
        self._mirror = Mirror(folder, config.storage_path) if config.storage_path else None
        self._clock = clock
        self._dispatcher_command = dispatcher_command
        self._inbox: list[Event] = []
        self._tick_is_due = False
        self._due: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._last_deadline: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop_reason: str | None = None
        self._closing = False
        self._room = Room(folder.path, self._guarded, self._schedule_tick)
        self._is_sound = True  # what the runner knows is in the store, or will be
        self._accepted: list[dict[str, Any]] = []  # users' changes that are committed and not yet handled
        self._unheard = 0  # so many of the last replies came when all was over
        self._heard: int | None = None  # the last reply that was acted upon; None: all were

    # ------------------------------------------------------------------ for others

    async def run(self) -> ExperimentStatus:
        """Run the experiment until it is over or `stop` was called; nothing of ours is left when this returns.

        Raises `ExecutorError` when nothing can run at all, `StoreError` when the store cannot be written.
        """
        if self.config.direction_note:
            _log.info("%s", self.config.direction_note)
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._opened = asyncio.Event()
        self._session = self._make_session()
        self._opening = self._loop.create_task(self._open())
        try:
            if await self._is_open():
                if self._mirror is not None:
                    self._start_task(self._mirror.run())
                await asyncio.shield(self._over)  # whoever cancels us does not decide how it ended
        finally:
            self._closing = True
            self._cancel_timers()
            await asyncio.gather(
                self._session.terminate(_TERMINATE_TIMEOUT), self.cleanup_trials(), return_exceptions=True
            )
            self._write_end()
            self.listeners.end(self._row)
            if self._mirror is not None:
                await asyncio.to_thread(self._mirror.sync)
        return ExperimentStatus(self.store.experiment().status)

    async def end(self, reason: str) -> ExperimentStatus:
        """End an experiment that nobody runs: what its trials reported is taken in, and they are stopped."""
        self._inbox.append(StopRequested(self._clock(), reason))
        return await self.run()

    def stop(self, reason: str = "the experiment was stopped") -> None:
        """End the experiment: what runs is ended with grace, and its results are kept."""
        self._stop_reason = self._stop_reason or reason
        self._post([StopRequested(self._clock(), reason)])
        if self.runner is None:
            self._opening.cancel()

    def stop_now(self, reason: str) -> None:
        """End the experiment as `stop` does, and commit that first; where nothing can be written, it ends unwritten."""
        self.stop(reason)
        if self.runner is None:
            self._guarded(partial(self.store.set_status, ExperimentStatus.STOPPED.value, reason))
        else:
            self._guarded_tick()
            self._guarded(self._room.demand)

    def kill(self) -> None:
        """Let an experiment that is being stopped end at once: its trials get no grace any more."""
        self.executor.kill()

    def add_trial(self, parameters: Mapping[str, Any]) -> None:
        """Run a trial with parameters of the user's choice; raises `ValueError` when it cannot be run any more."""
        why_not = "" if self.runner is None else self.runner.why_not_add()
        if why_not:
            raise ValueError(f"no trial can be added: {why_not}")
        self._post([added_trial(parameters, self._clock())])

    def now(self) -> float:
        """The experiment's time: seconds since the epoch."""
        return self._clock()

    def apply(self, events: Sequence[Event], config: ExperimentConfig | None = None) -> None:
        """Commit what a user asked for, with the config that it makes, and handle it.

        Raises `StoreError` when it cannot be committed; then nothing changes, neither now nor later.
        """
        if self._closing or self._over.done():
            raise StoreError("the experiment is ending")
        if self._room.is_awaited_by(self._inbox):
            self._room.demand()
        accepted = [*self._accepted, *map(recorded, events)]
        snapshot = self._snapshot(self._opened_runner, accepted)
        self.store.accept(snapshot, None if config is None else json.dumps(config.canonical()))
        # Handled before anything else: the caller has checked the events against how things stand now.
        place = len(self._accepted)
        self._inbox[place:place] = events
        self._accepted = accepted
        self.config = config or self.config
        self._guarded_tick()

    async def cleanup_trials(self) -> None:
        """End all agents and what they run."""
        await self.executor.close()

    def troubles(self) -> list[str]:
        """What is out of order at present, as sentences; the experiment goes on, or waits until it is mended."""
        of_runner = () if self.runner is None else troubles_of(self.runner)
        return [*self._room.troubles(), *self.executor.troubles(), *of_runner]

    @property
    def dispatcher_pid(self) -> int | None:
        """The process id of the dispatcher."""
        return self._session.pid

    # ------------------------------------------------------------------ opening

    async def _is_open(self) -> bool:
        """Wait for the opening; False when `stop` came first."""
        try:
            await self._opening
        except asyncio.CancelledError:
            if self._stop_reason is None:
                raise
            return False
        return True

    async def _open(self) -> None:
        """Start the dispatcher and the executor side by side, then take up what the store holds."""
        starting = asyncio.ensure_future(self._session.start(self.store.conversation, self._saved_state()))
        try:
            totals = await self.executor.open(self._setup(), self._post)
        finally:
            await starting
        runner = TrialRunner(
            self.folder.experiment_id,
            limits_of(self.config),
            Ledger(totals),
            request_of(self.config),
            objectives_of(self.config),
        )
        row = self.store.experiment()
        runner.restore(self.store.trials(), row.snapshot or {}, row.run_time)
        if self.folder.clock_jump:
            _log.warning("the clock was set by %+.0f s since the last manager ended", self.folder.clock_jump)
            runner.shift_starts(self.folder.clock_jump)
        self.runner = runner
        results = partial(committed_results, self.store, runner.get_trials())
        said = self.listeners.begin(runner, results, self._clock, self._row)
        self._heard = (row.snapshot or {}).get("heard")
        self._accepted = (row.snapshot or {}).get("accepted", [])
        self._inbox[:0] = [
            *map(event_of, self._accepted),
            *self._unheard_replies(),
            *self.first_events(runner, self._clock()),
            *said,
        ]
        self._opened.set()
        self.executor.prepare(runner.next_agents())
        if self._session.is_new:
            self._send_first([(CommandType.Initialize, json.dumps(self.config.search_space))])
        await self._take_up(runner)
        if self._inbox:
            self._schedule_tick()

    def _unheard_replies(self) -> list[Event]:
        """What the dispatcher had said when an earlier manager no longer listened."""
        replies = [] if self._heard is None else self.store.replies(self._heard)
        frames = [Frame(CommandType(code.encode()), payload) for _, code, payload in replies]
        return [meaning_of(frame, self._clock()) for frame in frames]

    async def _take_up(self, runner: TrialRunner) -> None:
        """Find the attempts that were running; do again what an earlier manager may not have come to do."""
        for copy in runner.copies():
            self._perform(copy)
        await self.executor.attach(runner.orders())
        for trial in runner.stopping():
            is_pause = trial.verdict is not None and trial.verdict.cause is Cause.PAUSED
            self._perform((PauseTrial if is_pause else StopTrial)(trial.trial_id, trial.attempt))

    def _row(self) -> dict[str, Any]:
        return experiment_row(self._opened_runner, self.folder.path, self._clock())

    def _send_first(self, commands: Sequence[tuple[CommandType, str]]) -> None:
        """Commit and send commands that are no answer to an event."""
        numbered = self._session.number(commands)
        self._commit(numbered)
        self._session.write(numbered)

    def _make_session(self) -> DispatcherSession:
        setup = DispatcherSetup(
            config=self.config.canonical(),
            folder=self.folder.path,
            clock=self._clock,
            log_level=self.config.log_level,
            command=self._dispatcher_command,
            timeout=self.config.dispatcher_timeout,
        )
        session = DispatcherSession(setup, lambda event: self._post([event]))
        session.on_divergence = self._on_divergence
        session.on_unusable = self._on_unusable_checkpoint
        session.on_progress = self._on_progress
        session.on_unclogged = self.executor.acknowledge
        return session

    def _setup(self) -> RunSetup:
        return RunSetup(
            experiment_id=self.folder.experiment_id,
            folder=self.folder.path,
            token=self.store.experiment().token,
            run=run_of(self.config, self.folder),
            concurrency=self.config.trial_concurrency,
            clock=self._clock,
            request=request_of(self.config),
            agent_timeout=agent_timeout_of(self.config),
        )

    # ------------------------------------------------------------------ the loop

    @property
    def _opened_runner(self) -> TrialRunner:
        if self.runner is None:
            raise RuntimeError("the manager is not running")
        return self.runner

    def _post(self, events: Sequence[Event]) -> None:
        """Take events in; they are handled together with whatever else comes in this turn of the loop."""
        self._inbox.extend(events)
        if self.runner is not None:
            self._schedule_tick()

    def _schedule_tick(self) -> None:
        if not self._tick_is_due:
            self._tick_is_due = True
            self._loop.call_soon(self._guarded_tick)

    def _guarded_tick(self) -> None:
        self._guarded(self.step)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001
            # Nothing is known to be right any more: stop acting, and let `run` raise it.
            self._is_sound = False
            if not self._over.done():
                self._over.set_exception(error)

    def step(self) -> None:
        """One turn of the loop: take in what has come, commit it, act on it, tell it. Usually there is no need to."""
        self._tick_is_due = False
        if self._over.done() or self._closing or self._room.is_awaited_by(self._inbox):
            return
        events, self._inbox, self._accepted = self._inbox, [], []
        cursors = self.executor.take_cursors()
        effects = [effect for event in events for effect in self._handle(event)]
        sends = [(effect.command, effect.payload) for effect in effects if isinstance(effect, SendCommand)]
        commands = self._session.number(sends)
        self._heard = None
        replies = self._session.take_replies(keep=self._unheard)
        checkpoints = () if self._unheard else self._session.take_checkpoints()
        turn = _Turn(events, cursors, effects, commands, self._tick(commands, replies, checkpoints))
        self._room.attempt(partial(self._write, turn.tick), partial(self._act, turn))

    def _act(self, turn: _Turn) -> None:
        """What is committed is done and told."""
        self.executor.confirm(turn.cursors)
        for effect in turn.effects:
            self._perform(effect)
        if not self._session.is_clogged:
            self.executor.acknowledge()
        self._session.write(turn.commands)
        if said := self.listeners.after(turn.tick.changes, turn.events, self._clock()):
            self._post(said)
        self._set_deadline()
        self.on_tick()
        self._on_progress()

    def _handle(self, event: Event) -> list[Effect]:
        """Let the runner handle an event; what the dispatcher still says when all ends is kept for a resume."""
        if isinstance(
            event, ExecutorFailed
        ):  # as if the manager had been killed: the store says where all stands
            raise ExecutorError(event.reason)
        runner = self._opened_runner
        is_over = runner.status is ExperimentStatus.STOPPING or runner.is_finished()
        if is_over and isinstance(event, REPLIES):
            self._unheard += 1
            return []
        return runner.handle(event)

    def _commit(
        self,
        commands: Sequence[Record],
        replies: Sequence[Record] = (),
        checkpoints: Sequence[SavedState] = (),
    ) -> None:
        try:
            self._write(self._tick(commands, replies, checkpoints))
        except StoreError:
            self._is_sound = False
            raise

    def _tick(
        self, commands: Sequence[Record], replies: Sequence[Record], checkpoints: Sequence[SavedState]
    ) -> StoreTick:
        """All that is to be committed now."""
        runner = self._opened_runner
        now = self._clock()
        return StoreTick(
            runner.take_changes(),
            commands,
            replies,
            runner.status.value,
            runner.reason,
            runner.error,
            runner.elapsed(now),
            now if runner.is_finished() else None,
            self._snapshot(runner, self._accepted),
            checkpoints,
        )

    def _write(self, tick: StoreTick) -> None:
        self.store.commit(tick)
        if tick.dispatcher_checkpoints:
            with contextlib.suppress(NoRoomError):  # then they go with the next
                for path in self.store.prune_dispatcher_checkpoints():
                    (self.folder.path / "checkpoint" / path).unlink(missing_ok=True)

    def _snapshot(self, runner: TrialRunner, accepted: Sequence[Mapping[str, Any]]) -> str:
        more: dict[str, Any] = {} if self._heard is None else {"heard": self._heard}
        if accepted:
            more["accepted"] = accepted
        return orjson.dumps(runner.snapshot() | more, option=orjson.OPT_NON_STR_KEYS).decode()

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, StartTrial):
            self.executor.start_trial(effect.order)
        elif isinstance(effect, StopTrial):
            self.executor.stop_trial(effect.trial_id, effect.attempt)
        elif isinstance(effect, PauseTrial):
            self.executor.pause_trial(effect.trial_id, effect.attempt)
        elif isinstance(effect, CopyCheckpoint):
            if self.executor.has_virtual_clock:
                return  # imagined trials have imagined checkpoints
            clone_checkpoint(self.folder.path / effect.source, self.folder.path / effect.target)
        elif isinstance(effect, RestoreDispatcher):
            _log.warning("restoring the dispatcher: %s", effect.reason)
            self._restore_dispatcher()
        elif isinstance(effect, Finish):
            self._over.set_result(None)

    def _on_progress(self) -> None:
        """Tell the executor when nothing is left to do and the dispatcher owes no answer."""
        if self.runner is None or self._inbox or not self._session.has_answered_all or self._over.done():
            return
        if self.runner.is_stalled:
            self._post([DispatcherAnswered(self._clock())])
        else:
            self.executor.on_idle(self._next_deadline())

    # ------------------------------------------------------------------ time

    def _set_deadline(self) -> None:
        runner = self._opened_runner
        if runner.status is ExperimentStatus.STOPPING:
            self._set_last_deadline()
            return
        due = self._next_deadline()
        if due == self._due or self.executor.has_virtual_clock:
            return
        self._due = due
        if self._deadline is not None:
            self._deadline.cancel()
        if due is not None:
            self._deadline = self._loop.call_later(max(0.0, due - self._clock()), self._tick_time)

    def _next_deadline(self) -> float | None:
        """When time has to be looked at again: for the runner's limits, or for a stopper."""
        due, left = self._opened_runner.next_deadline(), self.listeners.time_left()
        if left is None:
            return due
        asked = self._clock() + left
        return asked if due is None else min(due, asked)

    def _set_last_deadline(self) -> None:
        """However much still comes in, a stopping experiment waits for its trials only so long."""
        if self._last_deadline is None:
            grace = self.config.kill_grace + _STOP_MARGIN
            self._last_deadline = self._loop.call_later(grace, self._give_up_on_trials)

    def _tick_time(self) -> None:
        self._due = None
        self._post([Tick(self._clock())])

    def _give_up_on_trials(self) -> None:
        """The experiment is stopping, and some trials do not end: count them as ended, their agents are killed."""
        now = self._clock()
        orders = self._opened_runner.orders()
        self._post(
            [AttemptEnded(now, o.trial_id, o.attempt, error="did not end when killed") for o in orders]
        )

    def _cancel_timers(self) -> None:
        self._room.close()
        for timer in (self._deadline, self._last_deadline):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()

    # ------------------------------------------------------------------ the dispatcher's troubles

    def _on_divergence(self, why: str) -> None:
        """The tuner is not reproducible: begin a new record and tell a fresh one the results so far."""
        _log.warning(
            "the tuner is not reproducible (%s): it starts afresh and is told all results so far", why
        )
        self._start_task(self._begin_new_record())

    async def _begin_new_record(self) -> None:
        await self._opened.wait()  # what there is to tell is the runner's knowledge
        await self._session.restart(self._new_record, mode="resume")

    def _new_record(self, saved: SavedState | None) -> Conversation:
        """Replace the record by one that tells what all conversations so far have come to."""
        self._room.demand()
        if self._inbox:
            self.step()
        runner = self._opened_runner
        first = [(CommandType.Initialize, json.dumps(self.config.search_space)), *history_of(runner)]
        first += user_imports(self.store.commands(), runner.get_trials())
        if missing := runner.ask_in_one():
            first.append((CommandType.RequestTrialJobs, str(missing)))
        commands = [
            (n, command.value.decode(), payload) for n, (command, payload) in enumerate(first, start=1)
        ]
        self._session.take_replies()
        self._unheard = 0
        self.store.begin_conversation(commands)
        return Conversation(commands)

    def _restore_dispatcher(self) -> None:
        self._start_task(self._session.restart(self.store.conversation, self._saved_state()))

    def _saved_state(self) -> SavedState | None:
        """The last checkpoint of the dispatcher whose file is there."""
        while (saved := self.store.dispatcher_checkpoint()) is not None:
            if (self.folder.path / "checkpoint" / saved.path).is_file():
                return saved
            _log.warning("the dispatcher's checkpoint %s is missing", saved.path)
            self.store.drop_dispatcher_checkpoint(saved)
        return None

    def _on_unusable_checkpoint(self, saved: SavedState) -> None:
        """The checkpoint before it, or the whole conversation, brings the dispatcher back as well."""
        _log.warning("the dispatcher's checkpoint %s cannot be used; see logs/dispatcher.log", saved.path)
        self.store.drop_dispatcher_checkpoint(saved)
        self._restore_dispatcher()

    def _start_task(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self._over.done():
            self._over.set_exception(error)

    # ------------------------------------------------------------------ the end

    def _write_end(self) -> None:
        if not self._is_sound or self._room.is_awaited:
            return  # the last tick that was written stands
        try:
            if self.runner is not None:
                self._commit_last()
            elif self._stop_reason is not None:
                self.store.set_status(ExperimentStatus.STOPPED.value, self._stop_reason)
        except StoreError as error:
            _log.error("the end of the experiment could not be written: %s", error)

    def _commit_last(self) -> None:
        """Record what the dispatcher said last, and that nobody has acted upon it yet."""
        if self._over.done() and self._over.exception() is not None:
            self._commit(())  # nothing is known to be right any more
            return
        replies = self._session.take_replies()
        if replies:
            self._heard = replies[0][0] - 1
        self._commit((), replies, self._session.take_checkpoints())
