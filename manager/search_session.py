"""An experiment whose trials are run by its caller: without a process of its own, one turn for each call.

A turn holds the folder's lock, handles events, and commits what they change in one transaction; processes that share
a folder take turns. Each has the runner and the plug-ins in its memory. Before its turn it takes in what the others
have committed: the trials from their rows, and for the plug-ins the recorded commands, as after a restart.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson

from ..config import ExperimentConfig
from ..dispatcher import InlineDispatcher
from ..protocol import CommandType, Frame, dumps, loads, main_objective, parameters_of
from ..runner import (
    AttemptEnded,
    AttemptOrder,
    AttemptStarted,
    DispatcherReady,
    Effect,
    Event,
    FailureKind,
    Ledger,
    LimitsChanged,
    PauseTrial,
    Reported,
    SendCommand,
    StartTrial,
    Totals,
    Trial,
    TrialRunner,
    Verdict,
    added_trial,
    check_final,
    fault_of_intermediate,
)
from ..store import ExperimentFolder, RecordRow, Store, StoreTick, has_ended, steady_clock
from .dispatcher_link import history_of, is_reply, meaning_of, user_imports
from .run_settings import difference_in, limits_of, names_of_objectives, new_store, objectives_of

_log = logging.getLogger(__name__)

_UNKNOWN = -1  # no version of a store


class PausesError(ValueError):
    """A plug-in wants to pause trials; who runs trials by asking and telling cannot."""


class OtherSearchError(ValueError):
    """The folder has another search."""


class UnknownTrialError(LookupError):
    """There is no such trial in the search."""


class TrialOverError(RuntimeError):
    """The trial has ended, or was begun again: this attempt takes no more results."""


class SearchSession:
    """Turns of one experiment in this process; `config` is that of the store.

    Methods raise `FolderError` while a manager runs the experiment, `StoreError` if its store cannot be used, and
    `DispatcherError` for what a plug-in does wrong; then nothing has changed.
    """

    def __init__(
        self, path: Path, config: ExperimentConfig | None = None, clock: Callable[[], float] | None = None
    ) -> None:
        self.now = clock or steady_clock()
        self._mutex = threading.Lock()
        if config is not None:
            _load_plugins(config)  # raises what is wrong with the plug-ins before anything is made
        self.folder = ExperimentFolder.shared(path, make=config is not None)
        with self.folder.locked():
            self._store = _open_store(self.folder, config, self.now())
        self.config = ExperimentConfig.from_canonical(self._store.experiment().config)
        self.objectives = names_of_objectives(self.config)
        self._store.objectives = self.objectives
        most = (config or self.config).max_trial_number
        self._limits = replace(limits_of(self.config), max_trial_number=most, max_identical_failures=0)
        self._runner: TrialRunner | None = None  # None: it must be read from the store
        self._dispatcher: InlineDispatcher | None = None
        self._version = _UNKNOWN
        self._observers: list[Callable[[], None]] = []
        self._is_touched = self._is_closed = False
        self._commands: list[RecordRow] = []
        self._replies: list[RecordRow] = []
        self._sent = self._answered = 0

    def close(self) -> None:
        """Close the store; trials that were begun stay as they are."""
        with self._mutex:
            self._is_closed = True
            self._store.close()

    # ------------------------------------------------------------------ what callers do

    def begin(self) -> AttemptOrder | None:
        """Return the next attempt for the caller to run; None if there is nothing to run now."""
        with self._turn():
            runner = self._current
            if runner.is_finished():  # the tuner may have something new by now
                runner = self._restore_runner(concurrency=1)
                effects = self._handle(DispatcherReady(self.now(), self._plugins.wants_periodical))
            else:
                effects = self._handle(self._with_concurrency(len(runner.slots) + 1))
            order = next((effect.order for effect in effects if isinstance(effect, StartTrial)), None)
            if order is not None:
                self._handle(AttemptStarted(self.now(), order.trial_id, order.attempt, os.getpid()))
            self._handle(self._with_concurrency(0))
            return order

    def why_none(self) -> str:
        """Say why there was nothing to run."""
        runner = self._current
        most = self._limits.max_trial_number
        if most is not None and runner.created >= most:
            return f"all {most} trials are made"
        return runner.reason or "the tuner has nothing more to propose"

    def why_not_judged(self, value: str) -> str:
        """Return why an intermediate result, JSON text, cannot be judged; empty if it can."""
        main = main_objective(objectives_of(self.config)).name
        return fault_of_intermediate(value, main, self.objectives)

    def report(self, trial_id: str, attempt: int | None, sequence: int, value: str) -> str | None:
        """Take an intermediate result, JSON text; return why the trial should stop, None if it should not."""
        with self._turn():
            trial = self._claimed(trial_id, attempt)
            who = self.now(), trial.trial_id, trial.attempt
            self._handle(Reported(*who, kind="intermediate", sequence=sequence, value=value))
            return None if trial.verdict is None else trial.verdict.reason

    def end(self, name: str | int, attempt: int | None, final: str | None = None) -> Trial:
        """End an attempt well and return its trial; without a `final` result (JSON text) its last report is that.

        A trial that was to stop is EARLY_STOPPED instead. Raises `ValueError` if there is no result, or one that is
        not a number for each objective.
        """
        with self._turn():
            trial = self._claimed(name, attempt)
            who = self.now(), trial.trial_id, trial.attempt
            if trial.verdict is None:
                self._handle(Reported(*who, kind="final", sequence=0, value=self._final(trial, final)))
            self._handle(AttemptEnded(*who, exit_code=0))
            return trial

    def _final(self, trial: Trial, final: str | None) -> str:
        final = self._last_report(trial) if final is None else final
        if final is None:
            raise ValueError(f"trial {trial.sequence_id} has neither a result nor a report")
        judged = check_final(final, self.objectives)
        if isinstance(judged, Verdict) and judged.kind is FailureKind.USER_ERROR:
            raise ValueError(f"trial {trial.sequence_id} {judged.reason}")
        return final

    def fail(self, name: str | int, attempt: int | None, error: str, *, lost: bool = False) -> Trial:
        """End an attempt with an error, and return its trial; one that is `lost` without its fault is begun again."""
        with self._turn():
            trial = self._claimed(name, attempt)
            who = self.now(), trial.trial_id, trial.attempt
            self._handle(AttemptEnded(*who, error=error or "failed", lost=lost))
            return trial

    def _claimed(self, name: str | int, attempt: int | None) -> Trial:
        """Return a running trial, by its id or number; raise `UnknownTrialError` or `TrialOverError`."""
        trials = self._current.trials
        numbered = (trial for trial in trials.values() if trial.sequence_id == name)
        trial = trials.get(name) if isinstance(name, str) else next(numbered, None)
        if trial is None:
            raise UnknownTrialError(f"the search in {self.folder.path} has no trial {name!r}")
        if not trial.is_assigned:
            raise TrialOverError(f"trial {trial.sequence_id} is {trial.status}: it has been told already")
        if attempt is not None and attempt != trial.attempt:
            again = f"trial {trial.sequence_id} was begun again (attempt {trial.attempt})"
            raise TrialOverError(f"{again}: this result comes too late")
        return trial

    def reclaim(self) -> int:
        """Let the attempts whose process has ended count as lost; return how many. They are begun again."""
        with self._turn():
            lost = [trial for trial in self._current.live.values() if _is_lost(trial)]
            for trial in lost:
                error = f"its process {trial.pid} has ended"
                self._handle(AttemptEnded(self.now(), trial.trial_id, trial.attempt, error=error, lost=True))
            return len(lost)

    # ------------------------------------------------------------------ what callers read

    def running(self) -> list[Trial]:
        """Return the trials that were begun and have not ended, of all processes."""
        with self._turn():
            return [trial for trial in self._current.live.values() if trial.is_assigned]

    def _last_report(self, trial: Trial) -> str | None:
        """Return the last intermediate result of a trial, JSON text."""
        rows = self._store.metrics(trial.sequence_id)
        return next(iter([value for _, kind, _, _, value, _ in rows if kind == "PERIODICAL"][-1:]), None)

    @property
    def runner(self) -> TrialRunner | None:
        """The state of the search after the last turn of this process; None before the first."""
        return self._runner

    def watch(self, observer: Callable[[], None]) -> None:
        """Call `observer` after every turn that changed something."""
        self._observers.append(observer)

    # ------------------------------------------------------------------ turns

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock, take in what others did, and commit what happens in the block: all of it or nothing."""
        with self._mutex, self.folder.locked():
            if self._is_closed:
                where = self.folder.path
                raise ValueError(f"the search in {where} is closed: open it again, or close it later")
            self._is_touched = False
            try:
                self._catch_up()
                yield
                if self._is_touched:
                    self._commit()
                    for observer in self._observers:
                        observer()
            except BaseException:
                if self._is_touched or self._version == _UNKNOWN:
                    self._runner = self._dispatcher = None  # they may differ from the store
                raise

    @property
    def _current(self) -> TrialRunner:
        if self._runner is None:
            raise RuntimeError("this is done in a turn")
        return self._runner

    @property
    def _plugins(self) -> InlineDispatcher:
        if self._dispatcher is None:
            raise RuntimeError("this is done in a turn")
        return self._dispatcher

    def _handle(self, event: Event) -> list[Effect]:
        """Let the runner handle an event, and the plug-ins its commands, until nothing is left; return the effects."""
        self._is_touched = True
        events, others = deque([event]), list[Effect]()
        while events:
            for effect in self._current.handle(events.popleft()):
                if isinstance(effect, SendCommand):
                    events.extend(self._send(effect.command, effect.payload))
                elif isinstance(effect, PauseTrial):
                    who = "the assessor or the tuner"
                    raise PausesError(f"{who} pauses trials, which only an Experiment can do")
                else:
                    others.append(effect)
        return others

    def _send(self, command: CommandType, payload: str) -> Iterator[Event]:
        """Yield what the plug-ins reply to a command, which is recorded."""
        self._commands.append((self._sent + len(self._commands) + 1, command.code, payload))
        for frame in self._replies_to(command, payload):
            number = self._answered + len(self._replies) + 1
            self._replies.append((number, frame.command.code, frame.payload))
            yield meaning_of(number, frame, self.now())

    def _replies_to(self, command: CommandType, payload: str) -> list[Frame]:
        return [frame for frame in self._plugins.handle(command, payload) if is_reply(frame.command)]

    def _commit(self) -> None:
        runner, now = self._current, self.now()
        tick = StoreTick(
            changes=runner.take_changes(),
            commands=self._commands,
            replies=self._replies,
            status=runner.status.value,
            reason=runner.reason,
            error=runner.error,
            run_time=runner.elapsed(now),
            end_time=now if runner.is_finished() else None,
            snapshot=orjson.dumps(runner.snapshot(), option=orjson.OPT_NON_STR_KEYS).decode(),
        )
        self._store.commit(tick)
        self._sent += len(self._commands)
        self._answered += len(self._replies)
        self._commands, self._replies = [], []

    def _with_concurrency(self, count: int) -> LimitsChanged:
        limits = self._limits
        return LimitsChanged(self.now(), count, limits.max_trial_number, limits.max_experiment_duration)

    # ------------------------------------------------------------------ what others did

    def _catch_up(self) -> None:
        """Bring the runner and the plug-ins to what the store says."""
        version = self._store.version()
        if self._runner is not None and version == self._version:
            return
        self._version = _UNKNOWN  # until all is taken in
        self._commands, self._replies = [], []
        self._restore_runner()
        if self._dispatcher is None:
            self._sent = self._answered = 0
            self._dispatcher = _load_plugins(self.config)
        self._repeat(self._store.commands(self._sent), self._store.replies(self._answered))
        self._handle_first()
        self._version = version

    def _restore_runner(self, concurrency: int = 0) -> TrialRunner:
        """Make the runner from the trials in the store; it is not begun yet."""
        runner = TrialRunner(
            self.folder.experiment_id,
            replace(self._limits, trial_concurrency=concurrency),
            Ledger(Totals()),
            objectives=objectives_of(self.config),
        )
        row = self._store.experiment()
        runner.restore(self._store.trials(), row.snapshot or {}, row.run_time)
        self._runner = runner
        return runner

    def _repeat(self, commands: Sequence[RecordRow], replies: Sequence[RecordRow]) -> None:
        """Give the plug-ins recorded commands.

        If their replies differ from the record, give them only the results so far.
        """
        repeated = [
            (frame.command.code, loads(frame.payload))
            for _, code, payload in commands
            for frame in self._replies_to(CommandType(code.encode()), payload)
        ]
        self._sent += len(commands)
        self._answered += len(replies)
        if repeated != [(code, loads(payload)) for _, code, payload in replies]:
            what = "it gets the results so far, and not what was asked when"
            _log.warning("the tuner is not reproducible: %s", what)
            self._begin_again()

    def _begin_again(self) -> None:
        """Make new plug-ins that learn the results, and which parameters are being tried."""
        runner = self._current
        self._dispatcher = _load_plugins(self.config)
        running = [{"parameter": parameters_of(trial.record)} for trial in runner.live.values()]
        first = [
            *history_of(runner),
            *user_imports(self._store.commands(), runner.results()),
            SendCommand(CommandType.ImportData, dumps(running)),
        ]
        self._dispatcher.handle(CommandType.Initialize, json.dumps(self.config.search_space))
        for command in first:
            self._dispatcher.handle(command.command, command.payload)

    def _handle_first(self) -> None:
        """Begin the restored runner; a new search begins with its space and its starting points."""
        is_new = self._sent == 0
        if is_new:
            self._is_touched = True
            list(self._send(CommandType.Initialize, json.dumps(self.config.search_space)))
        touched = self._is_touched
        self._handle(DispatcherReady(self.now(), self._plugins.wants_periodical))
        self._is_touched = touched or bool(self._commands)
        for point in self.config.starting_points if is_new else ():
            self._handle(added_trial(point.parameters, self.now(), source=point.source))


def _load_plugins(config: ExperimentConfig) -> InlineDispatcher:
    """Return the plug-ins of a config; raise `PausesError` for a tuner that pauses trials."""
    made = InlineDispatcher(config.canonical())
    if made.pauses:
        raise PausesError(
            f"the tuner {config.tuner.name or config.tuner.class_name} pauses trials and resumes them from"
            " checkpoints, which only an Experiment can do: choose another one"
        )
    return made


def _open_store(folder: ExperimentFolder, config: ExperimentConfig | None, now: float) -> Store:
    """Return the store in a folder, or one made of `config`; raise `OtherSearchError` if it differs."""
    if config is not None and not folder.database.exists():
        return new_store(folder, config, now)[0]
    store = Store.open(folder.database)
    try:
        stored = ExperimentConfig.from_canonical(store.experiment().config)
        _check_same(folder, stored, config)
        if config is not None and (config.max_trial_number or 0) > (stored.max_trial_number or math.inf):
            extended = stored.model_copy(update={"max_trial_number": config.max_trial_number})
            store.set_config(extended.canonical())  # for status and pages
    except BaseException:
        store.close()
        raise
    return store


# Processes that share a search may have other values of these.
_FIELDS_THAT_MAY_DIFFER = {"training_service", "max_trial_number", "trial_code_directory"}


def _check_same(folder: ExperimentFolder, stored: ExperimentConfig, given: ExperimentConfig | None) -> None:
    """Raise `OtherSearchError` if a given field differs from the stored one, or if the experiment runs its trials."""
    if not folder.is_search(stored.canonical()):
        what = f"{folder.path} has an experiment that runs its own trials"
        raise OtherSearchError(f'{what}: pitchpipe.Experiment.restore("{folder.path}").run() continues it')
    if given is None:
        return
    plain = ExperimentConfig.from_canonical(given.canonical())
    for name in sorted(given.model_fields_set - _FIELDS_THAT_MAY_DIFFER):
        if difference := difference_in(name, stored, plain):
            what = f"the search in {folder.path} has another {difference}"
            raise OtherSearchError(f"{what}: name another folder, or give what it was made with")


def _is_lost(trial: Trial) -> bool:
    """Return whether the process that began a trial has ended."""
    if not trial.is_assigned or trial.pid is None:
        return False
    return has_ended(trial.pid, trial.start_time or 0.0)
