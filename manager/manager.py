"""The shell around `TrialRunner`: opens an experiment from its store, runs it, and ends it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import cast

from ..config import ExperimentConfig
from ..executors import RunSetup, TrialExecutor, in_thread_or_here
from ..protocol import CommandType, Frame, Json, JsonObject, is_starting_point, parameters_of
from ..runner import (
    Cause,
    Event,
    ExperimentStatus,
    Ledger,
    PauseTrial,
    StopRequested,
    StopTrial,
    Totals,
    TrialRunner,
    Wait,
    added_trial,
    event_of,
)
from ..store import ExperimentFolder, Mirror, NotWritableError, Store, StoreError
from .dispatcher_link import Dispatcher, DispatcherSetup, meaning_of
from .hooks import Hooks, PlainExperiment, experiment_row
from .manager_snapshot import ManagerSnapshot
from .run_settings import agent_timeout_of, limits_of, objectives_of, repeats_of, request_of, run_of
from .standby import StandbyDispatcher
from .start_facts import start_facts
from .timers import ExperimentTimers
from .trace import Trace, TracedTurnLoop
from .turn import EventLog, TurnLoop

_log = logging.getLogger(__name__)

# How long (s) a dispatcher may take to finish its command and end.
_TERMINATE_TIMEOUT = 7.0

FirstEvents = Callable[[TrialRunner, float], Iterable[Event]]
"""Returns the events that happen before all others, given the runner as restored and the time."""


class Manager:
    """Runs one experiment from its store to its end.

    It is open while its `async with` block runs, or from `open` to `close`. After `close` no process that it started
    is left. With `is_ending` nothing of the experiment's own code runs: no dispatcher is started, and no trial. `clock`
    returns seconds since the epoch; `runner` has the state of the experiment. `notes` are sentences about the
    configuration that users should read at the start, and `start_warnings` those to act on. A `trace`, if there is one,
    is complete after `close`. A `standby`, if there is one, becomes the first dispatcher.
    """

    def __init__(
        self,
        folder: ExperimentFolder,
        config: ExperimentConfig,
        store: Store,
        executor: TrialExecutor,
        clock: Callable[[], float],
        *,
        hooks: Hooks | None = None,
        first_events: FirstEvents | None = None,
        dispatcher_command: Sequence[str] | None = None,
        notes: Sequence[str] = (),
        is_ending: bool = False,
    ) -> None:
        self.folder = folder
        self.config = config
        self.store = store
        self.executor = executor
        self.hooks = hooks or Hooks()
        self.now = clock
        self.trace: Trace | None = None
        self.standby: StandbyDispatcher | None = None
        self.notes = [config.goal, *filter(None, [config.repeats_note, config.assessor_note]), *notes]
        self.start_warnings: Sequence[str] = ()
        self._first_events = first_events
        self._is_ending = is_ending
        self._dispatcher_command = dispatcher_command
        self._mirror = Mirror(folder, config.storage_path) if config.storage_path else None
        self._observers: list[Callable[[], None]] = []
        self._stop_reason: str | None = None
        self._is_closed = False
        self._last_waits: list[Wait] = []  # while it is closed
        self._loop: TurnLoop | None = None
        self._dispatcher: Dispatcher
        self._opening: asyncio.Task[None]

    # ------------------------------------------------------------------ running

    async def run(self) -> ExperimentStatus:
        """Run the experiment until it is over or `stop` was called.

        Raises `ExecutorError` when nothing can run at all, `StoreError` when the store cannot be written.
        """
        async with self:
            await self.wait()
        return ExperimentStatus(self.store.experiment().status)

    async def wait(self) -> None:
        """Wait until the experiment is over or was stopped; raises what `run` raises."""
        try:
            await self._opening
        except asyncio.CancelledError:
            if self._stop_reason is None:
                raise
            return  # stopped before it was open
        if self._mirror is not None:
            self._open_loop.start_task(self._mirror.run())
        await asyncio.shield(self._open_loop.over)  # a caller that is cancelled does not decide how it ended

    async def __aenter__(self) -> Manager:
        self.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def open(self) -> None:
        """Begin to open the experiment, on the running event loop; from now on it can be stopped."""
        for note in self.notes:
            _log.info("%s", note)
        for warning in self.start_warnings:
            _log.warning("%s", warning)
        make_loop = TurnLoop if self.trace is None else partial(TracedTurnLoop, self.trace)
        self._loop = loop = make_loop(
            self.folder.path, self.store, self.executor, self.hooks, self.now, self._observers
        )
        setup = self._dispatcher_setup()
        self._dispatcher = Dispatcher(
            setup, self.store, lambda: self.config.search_space, loop.take_dispatcher_events
        )
        self._opening = asyncio.create_task(self._open(loop))

    async def close(self) -> None:
        """End all that runs and write the end; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        patience = max(_TERMINATE_TIMEOUT, self.config.kill_grace)
        what, then = "the dispatcher and the agents to end", "they are killed"
        self._last_waits = [Wait(what=what, since=self.now(), longest=patience, then=then)]
        self._opening.cancel()
        await asyncio.gather(self._opening, return_exceptions=True)
        self._open_loop.close()
        ending = self._dispatcher.terminate(_TERMINATE_TIMEOUT)
        for outcome in await asyncio.gather(ending, self.executor.close(), return_exceptions=True):
            if isinstance(outcome, Exception):  # continue: the end must be written
                _log.error("not everything could be ended: %r", outcome, exc_info=outcome)
        self._write_end(self._open_loop)
        self._last_waits.clear()
        self.hooks.end(self._row)
        if self._mirror is not None:
            what = f"the copy in {self.config.storage_path}"
            self._last_waits = [Wait(what=what, since=self.now(), then="it is complete")]
            await asyncio.to_thread(self._mirror.sync)
            self._last_waits.clear()

    def stop(self, reason: str = "the experiment was stopped") -> None:
        """End the experiment: trials get their grace, and results are kept."""
        self._stop_reason = self._stop_reason or reason
        self._open_loop.post([StopRequested(self.now(), reason, cause="user: stop")])
        if self.runner is None:
            self._opening.cancel()

    def stop_now(self, reason: str) -> None:
        """End the experiment as `stop` does, and commit that first if anything can be written."""
        self.stop(reason)
        loop = self._open_loop
        if self.runner is None:
            loop.guarded(partial(self.store.set_status, ExperimentStatus.STOPPED.value, reason))
        else:
            loop.guarded(loop.turn)
            loop.guarded(loop.disk_space.demand)

    def kill(self) -> None:
        """End the trials of a stopping experiment at once, without their grace."""
        self.executor.kill()

    # ------------------------------------------------------------------ watching and changing

    @property
    def runner(self) -> TrialRunner | None:
        """The state of the experiment; None until it is restored."""
        return None if self._loop is None else self._loop.runner

    @property
    def dispatcher_pid(self) -> int | None:
        """The process id of the dispatcher."""
        return None if self._loop is None else self._dispatcher.pid

    def watch(self, observer: Callable[[], None]) -> None:
        """Call `observer` after every turn of the loop, on its thread."""
        self._observers.append(observer)

    def warnings(self) -> list[str]:
        """Return what the experiment suffers from or waits for at present, as sentences."""
        if self._loop is None:
            return []
        of_runner = () if self.runner is None else self.runner.warnings()
        of_disk, of_executor = self._loop.disk_space.warnings(), self.executor.warnings()
        return [*of_disk, *of_executor, *of_runner, *self.hooks.warnings]

    def waits(self) -> list[Wait]:
        """Return everything that the experiment waits for at present; a new kind of wait gets its line here."""
        if self._loop is None or self._is_closed:
            return list(self._last_waits)
        if self.runner is None:
            return [*self._dispatcher.waits(), *self.executor.waits()]
        return [
            *self._loop.disk_space.waits(),
            *self._dispatcher.waits(),
            *self.executor.waits(),
            *self._loop.timers.waits(),
            *self.runner.waits(),
        ]

    def add_trial(self, parameters: Mapping[str, Json]) -> None:
        """Run a trial with a user's parameters; raise `ValueError` if it can no longer be run."""
        why_not = "" if self.runner is None else self.runner.why_not_add()
        if why_not:
            raise ValueError(f"no trial can be added: {why_not}")
        self._open_loop.post([added_trial(parameters, self.now())])

    def apply(self, events: Sequence[Event], config: ExperimentConfig | None = None) -> None:
        """Commit a user's request, with the config that it makes, and handle it.

        Raises `StoreError` if it cannot be committed; then nothing changes, neither now nor later.
        """
        loop = self._open_loop
        loop.accept(events, None if config is None else json.dumps(config.canonical()))
        self.config = config or self.config
        loop.guarded(loop.turn)

    # ------------------------------------------------------------------ opening

    @property
    def _open_loop(self) -> TurnLoop:
        if self._loop is None:
            raise RuntimeError("the manager is not open: call it inside `async with`")
        return self._loop

    async def _open(self, loop: TurnLoop) -> None:
        """Start the dispatcher and the executor at the same time, then continue from the store."""
        loop.start_task(self.store.watch())
        starting = asyncio.ensure_future(self._dispatcher.start())
        try:
            totals = await self.executor.open(self._run_setup(), loop.post)
        finally:
            await starting
        snapshot = self.store.experiment().snapshot or {}
        own = cast("ManagerSnapshot", snapshot)
        runner = self._restored_runner(Ledger(totals), snapshot)
        timers = ExperimentTimers(
            runner=runner,
            executor=self.executor,
            hooks=self.hooks,
            clock=self.now,
            grace=self.config.kill_grace,
            post=loop.post,
            guarded=loop.guarded,
        )
        loop.open(runner, self._dispatcher, timers, own, self._event_log(runner, totals, snapshot))
        loop.put_first(self._first_of_all(runner, own))
        if not self._is_ending:
            self.executor.prepare(runner.next_agents())
        if self._dispatcher.is_new:
            loop.send_first(self._dispatcher.initialize())
        await self._resume_attempts(runner, loop)
        loop.schedule_if_due()
        if not self._is_ending:
            loop.start_task(self._note_start())  # at last: git takes the processor from what starts

    async def _note_start(self) -> None:
        """Store where the experiment runs now, and the state of its code."""
        facts = await in_thread_or_here(partial(start_facts, self.config.trial_code_directory))
        try:
            self.store.note_start(self.now(), *facts.stored())
        except NotWritableError as error:  # the experiment itself waits for room
            _log.warning("where this experiment runs is not noted: %s", error)

    def _restored_runner(self, ledger: Ledger, snapshot: JsonObject) -> TrialRunner:
        """Return the runner, restored from the store."""
        config = self.config
        runner = TrialRunner(
            self.folder.experiment_id,
            limits_of(config),
            ledger,
            request_of(config),
            objectives_of(config),
            repeats=repeats_of(config),
        )
        runner.restore(self.store.trials(), snapshot, self.store.experiment().run_time)
        if self.folder.clock_jump:
            _log.warning("the clock was set by %+.0f s since the last manager ended", self.folder.clock_jump)
            runner.shift_starts(self.folder.clock_jump)
        return runner

    def _event_log(
        self, runner: TrialRunner, totals: Totals, snapshot: Mapping[str, Json]
    ) -> EventLog | None:
        """Return where events are recorded, if the config asks for it."""
        if self.config.log_level not in ("debug", "trace"):
            return None
        log = EventLog(self.folder.path)
        log.begin(runner, totals, snapshot, self.now())
        return log

    def _first_of_all(self, runner: TrialRunner, snapshot: ManagerSnapshot) -> list[Event]:
        """Return what happens first: what earlier managers left, what callers add, what the stopper decides."""
        return [
            *map(event_of, snapshot.get("accepted", [])),
            *self._left_out_points(runner),
            *self._missed_replies(snapshot.get("heard")),
            *(self._first_events(runner, self.now()) if self._first_events else ()),
            *self.hooks.begin(runner, partial(self.store.results, runner.get_trials()), self.now, self._row),
        ]

    def _left_out_points(self, runner: TrialRunner) -> list[Event]:
        """Return the starting points that have no trial, because max_trial_number was reached."""
        records = [trial.record for trial in runner.get_trials()]
        known = [parameters_of(record) for record in records if is_starting_point(record)]
        missing = [point for point in self.config.starting_points if known and point.parameters not in known]
        return [added_trial(point.parameters, self.now(), source=point.source) for point in missing]

    def _missed_replies(self, last: int | None) -> list[Event]:
        """Return the replies that an earlier manager recorded and did not handle."""
        replies = [] if last is None else self.store.replies(last)
        return [
            meaning_of(number, Frame(CommandType(code.encode()), payload), self.now())
            for number, code, payload in replies
        ]

    async def _resume_attempts(self, runner: TrialRunner, loop: TurnLoop) -> None:
        """Find the attempts that were running; repeat what an earlier manager may not have done."""
        for copy in runner.copies():
            loop.perform(copy)
        await self.executor.attach(runner.orders())
        for trial in runner.stopping():
            is_pause = trial.verdict is not None and trial.verdict.cause is Cause.PAUSED
            loop.perform((PauseTrial if is_pause else StopTrial)(trial.trial_id, trial.attempt))

    def _row(self) -> PlainExperiment:
        return experiment_row(self._open_loop.opened_runner, self.folder.path, self.now())

    def _dispatcher_setup(self) -> DispatcherSetup:
        return DispatcherSetup(
            config=self.config.canonical(),
            folder=self.folder.path,
            clock=self.now,
            log_level=self.config.log_level,
            command=self._dispatcher_command,
            timeout=self.config.dispatcher_timeout,
            standby=self.standby,
            is_silent=self._is_ending,
        )

    def _run_setup(self) -> RunSetup:
        return RunSetup(
            experiment_id=self.folder.experiment_id,
            folder=self.folder.path,
            token=self.store.experiment().token,
            run=run_of(self.config, self.folder),
            concurrency=self.config.trial_concurrency,
            clock=self.now,
            request=request_of(self.config),
            agent_timeout=agent_timeout_of(self.config),
            may_start=not self._is_ending,
        )

    # ------------------------------------------------------------------ the end

    def _write_end(self, loop: TurnLoop) -> None:
        if not loop.may_write_end:
            return
        try:
            if loop.runner is not None:
                loop.commit_last()
            elif self._stop_reason is not None:
                self.store.set_status(ExperimentStatus.STOPPED.value, self._stop_reason)
        except StoreError as error:
            self._log_missing_end(loop, error)

    def _log_missing_end(self, loop: TurnLoop, error: StoreError) -> None:
        """Say what is missing in the store: nothing that counts if the runner's end is in it already."""
        if loop.runner is not None and loop.runner.is_finished():
            lost = "the tuner's last replies could not be written, and a resume asks for them again"
            _log.warning("all results are stored; only %s: %s", lost, error)
        else:
            _log.error("the end of the experiment could not be written: %s", error)
