"""The experiment's dispatcher, over all the processes that it may need: commands go in, events come out.

* Commands are numbered from 1 in the order in which they were committed. The number never travels: both sides count.
  The loop numbers commands, commits them, and only then has them sent.
* A reply is an event and a row of the record; both are committed in the same turn.
* A dispatcher that failed, or whose manager was killed, is restored from its last valid checkpoint and the commands
  recorded since then, which brings a seeded plug-in to the same state. Its replies are compared with the recorded ones,
  which win. At the first difference the plug-in is not reproducible: a new one gets only the results so far.
* Whatever happens to the process is an event, too. The runner answers with `RestoreDispatcher`, and the loop, after the
  commit, with a call of `restore` or `begin_record`. Nothing restores the dispatcher by itself.
* Only the present process counts. One that failed is disowned at once: what it still says is ignored, and the commands
  that it would get are only recorded, for the next one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...executors import SUSPECT_AFTER, Heartbeat
from ...protocol import (
    CommandType,
    Config,
    ErrorMessage,
    Frame,
    InitializedMessage,
    JsonObject,
    encode_frame,
    loads,
)
from ...runner import (
    DispatcherFailed,
    DispatcherReady,
    Event,
    RecordBegun,
    RestoreNeeded,
    SendCommand,
    TrialRunner,
    Wait,
)
from ...store import DispatcherRecord, RecordRow, SavedState, Store
from ..standby import DISPATCHER_COMMAND, StandbyDispatcher
from .dispatcher_checkpoints import DispatcherCheckpoints
from .dispatcher_process import DispatcherProcess, dispatcher_environment
from .numbered_commands import Command, CommandSender, QueueProgress, history_of, user_imports
from .replies import Divergence, Replay, failure_of, is_reply, meaning_of

_log = logging.getLogger(__name__)

CHECKPOINT_UNUSABLE = 3
"""The exit code of a dispatcher that cannot use the checkpoint it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherSetup:
    """What a dispatcher is started with; `config` is the canonical configuration with its search space.

    A dispatcher that gives no sign of life for `timeout` seconds is replaced; a plug-in may compute longer.
    The first one may be a `standby`. With `is_silent` there is none: commands are only recorded, for the next one.
    """

    config: Config
    folder: Path
    clock: Callable[[], float]
    log_level: str = "info"
    command: Sequence[str] | None = None
    timeout: float = 600.0
    standby: StandbyDispatcher | None = None
    is_silent: bool = False


class Dispatcher:
    """The process of one experiment's plug-ins, and the record from which it can be replaced.

    `deliver` gets each event as it comes, on the event loop's thread, and nothing when the dispatcher has read or done
    something for which others may wait. `unprocessed` counts the last replies that had no effect because the experiment
    was ending: they are committed last of all, for a resume.
    """

    def __init__(
        self,
        setup: DispatcherSetup,
        store: Store,
        search_space: Callable[[], JsonObject | None],
        deliver: Callable[[Sequence[Event]], None],
    ) -> None:
        self.unprocessed = 0
        self._setup = setup
        self._store = store
        self._search_space = search_space
        self._deliver = deliver
        self._process: DispatcherProcess | None = None  # None while it is being replaced, too
        self._replaced: DispatcherProcess | None = None
        self._heartbeat: Heartbeat | None = None
        self._is_ready = False
        self._sender = CommandSender(self._send)
        self._progress = QueueProgress()
        self._is_terminated = False  # then the end of a process is not a failure
        self._answered = 0  # the number of the last reply
        self._new_replies: list[RecordRow] = []
        self._replay = Replay()
        self._checkpoints = DispatcherCheckpoints(store, setup.folder / "checkpoint")
        self._restored: SavedState | None = None  # what the process was started from
        self._why_checkpoint_unusable = ""  # why the process cannot use it
        self._takers: dict[CommandType, Callable[[Any], None]] = {
            CommandType.Processed: lambda done: self._progress.note_done(done["queue"], done["n"]),
            CommandType.Initialized: self._take_initialized,
            CommandType.Checkpoint: self._take_checkpoint,
            CommandType.Error: self._take_error,
            CommandType.Ping: lambda payload: None,
        }

    # ------------------------------------------------------------------ starting, restoring, ending

    async def start(self) -> None:
        """Start it from its last checkpoint, if there is one, and send it the record since then."""
        saved = self._checkpoints.last()
        await self._start(partial(self._store.dispatcher_record, saved), saved)

    async def restore(self, reason: str) -> None:
        """Replace the process by one that gets the last checkpoint and the record since then."""
        _log.warning("restoring the dispatcher: %s", reason)
        await self._end_replaced()
        await self.start()

    async def begin_record(self, reason: str, settle: Callable[[], TrialRunner]) -> None:
        """Replace the process by one that gets only the results so far, because the tuner is not reproducible.

        `settle` commits what is pending and returns the runner.
        """
        what = "a new one starts and gets all results so far"
        _log.warning("the tuner is not reproducible (%s): %s", reason, what)
        await self._end_replaced()
        await self._start(partial(self._new_record, settle), mode="resume")

    async def terminate(self, timeout: float) -> None:
        """Let the dispatcher finish its work, and end it."""
        self._is_terminated = True
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._setup.standby is not None:
            self._setup.standby.close()
        if self._replaced is not None:
            await self._replaced.kill()
        if self._process is not None:
            self.flush()
            await self._process.terminate(timeout)

    @property
    def pid(self) -> int | None:
        """The process id of the present dispatcher."""
        return self._process.pid if self._process is not None else None

    async def _start(
        self, recall: Callable[[], DispatcherRecord], saved: SavedState | None = None, mode: str = "start"
    ) -> None:
        """Start a process, from a checkpoint if there is one, and send it what `recall` returns.

        `recall` is called when the process runs: it includes what was committed until then, so that nothing is sent
        twice or left out.
        """
        setup = self._setup
        if setup.is_silent:
            self._take_up(recall())
            return
        process = DispatcherProcess(
            lambda frames: self._on_frames(process, frames),
            lambda code, why: self._on_end(process, code, why),
            lambda: self._deliver(()),
        )
        environment = dispatcher_environment(
            setup.config,
            setup.folder,
            mode=mode,
            log_level=setup.log_level,
            gpus=_gpus_of_tuner(setup.config),
        )
        command = list(setup.command or DISPATCHER_COMMAND)
        if saved is not None:
            command += ["--restore", str(self._checkpoints.path(saved))]
        self._process = process  # before it starts: it may end at once
        standby = setup.standby if saved is None else None
        await process.start(command, environment, setup.folder / "logs" / "dispatcher.out", standby)
        if self._process is not process:
            return  # it is being replaced already
        self._restored, self._why_checkpoint_unusable = saved, ""
        self._heartbeat = Heartbeat(
            timeout=setup.timeout, beat=self._ping, on_silence=lambda: self._on_silence(process)
        )
        if setup.command is None:
            self._heartbeat.start()  # our dispatcher replies as soon as its plug-ins are loaded
        self._take_up(recall())
        process.listen()

    async def _end_replaced(self) -> None:
        self._disown()
        if self._replaced is not None:
            await self._replaced.kill()

    def _disown(self) -> None:
        """Ignore the present process from now on, and send it nothing."""
        self._is_ready, self._sender.is_eager = False, True
        self._sender.forget_unsent()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._process is not None:
            self._replaced, self._process = self._process, None

    def _take_up(self, record: DispatcherRecord) -> None:
        """Send a new process what is recorded, and expect its replies once more."""
        commands, saved = record.commands, record.saved
        # Replies that are not committed yet count, too.
        replies = [*record.replies, *self._new_replies]
        covered = saved.n if saved is not None else 0
        self._sender.last = commands[-1][0] if commands else covered
        self._answered = replies[-1][0] if replies else (saved.default_reply if saved else 0)
        self._progress.restart(covered)
        self._is_ready = False
        self._checkpoints.forget_new()
        self._replay = Replay(DispatcherRecord(commands, replies, saved).expected())
        self.write([Command.recorded(row) for row in commands])

    def _new_record(self, settle: Callable[[], TrialRunner]) -> DispatcherRecord:
        """Replace the record by one that only holds the results so far."""
        self._deliver([RecordBegun(self._now(), cause="dispatcher")])
        runner = settle()
        first = [self.initialize(), *history_of(runner)]
        first += user_imports(self._store.commands(), runner.results())
        if runner.requested:
            first.append(SendCommand(CommandType.RequestTrialJobs, str(runner.requested)))
        rows = [(n, sent.command.code, sent.payload) for n, sent in enumerate(first, start=1)]
        self._new_replies.clear()
        self.unprocessed = 0
        self._store.begin_dispatcher_record(rows)
        return DispatcherRecord(rows)

    # ------------------------------------------------------------------ commands

    def initialize(self) -> SendCommand:
        """Return the first command of a record."""
        return SendCommand(CommandType.Initialize, json.dumps(self._search_space()))

    def number(self, commands: Iterable[SendCommand]) -> list[Command]:
        """Give commands their numbers; they must be committed before they are written."""
        return self._sender.number(commands)

    def write(self, commands: Sequence[Command]) -> None:
        """Send committed commands; those that need no reply may wait for the next ones."""
        for command in commands:
            self._progress.note_sent(command)
        self._sender.write(commands)

    def flush(self) -> None:
        """Send the commands that wait."""
        self._sender.flush()

    def _send(self, data: bytes) -> None:
        if self._process is not None:
            self._process.write(data)

    def _ping(self) -> None:
        self._send(encode_frame(CommandType.Ping))  # no command: it has no number

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever sent."""
        return self._sender.last == 0

    @property
    def is_full(self) -> bool:
        """Whether the dispatcher has so much left to read that no more reports should be fetched."""
        return self._process is not None and self._process.is_full

    @property
    def has_answered_all(self) -> bool:
        """Whether the dispatcher has done everything that it was sent."""
        return self._is_ready and self._progress.is_complete

    def waits(self) -> Iterator[Wait]:
        """Yield what is waited for here: a start, a sign of life, or what a plug-in computes."""
        if self._setup.is_silent or self._is_terminated or self.has_answered_all:
            return
        silence = 0.0 if self._heartbeat is None else self._heartbeat.silence
        if self._is_ready and silence < SUSPECT_AFTER:
            n = self._progress.first_undone(self._sender.last)
            yield Wait(what=f"the tuner or assessor to handle command {n}", then="it has done so, or raises")
            return
        what = "the dispatcher, which gives no sign of life" if self._is_ready else "the dispatcher to start"
        since, longest = self._now() - silence, self._setup.timeout
        yield Wait(what=what, since=since, longest=longest, then="it is replaced")

    # ------------------------------------------------------------------ replies

    def take_replies(self) -> tuple[Sequence[RecordRow], Sequence[SavedState]]:
        """Return the replies that had their effect, and the checkpoints, to be committed together."""
        count = len(self._new_replies) - self.unprocessed
        replies, self._new_replies = self._new_replies[:count], self._new_replies[count:]
        return replies, () if self.unprocessed else self._checkpoints.take()

    def prune_checkpoints(self) -> None:
        """Delete the older checkpoints."""
        self._checkpoints.prune()

    def _on_frames(self, process: DispatcherProcess, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if process is not self._process:
                return  # it is being replaced
            taker = self._takers.get(frame.command)
            if taker is not None:
                taker(loads(frame.payload) if frame.payload else {})
            else:
                self._take_reply(frame)
        if self._heartbeat is not None:
            self._heartbeat.heard()
        self._deliver(())

    def _take_initialized(self, message: InitializedMessage) -> None:
        periodical_queues = tuple(message.get("periodical_queues", ("assessor",)))
        self._progress.periodical_queues = periodical_queues
        self._is_ready = True
        if "protocol" in message and self._heartbeat is not None:
            self._heartbeat.start()
        wants_periodical = bool(periodical_queues)
        any_results = tuple(message.get("any_results", ()))
        learns = message.get("learns", True)
        self._sender.is_eager = learns or wants_periodical
        ready = DispatcherReady(self._now(), wants_periodical, any_results, learns, cause="dispatcher")
        self._deliver([ready])

    def _take_checkpoint(self, saved: JsonObject) -> None:
        """Note that one queue has saved its state, that the whole checkpoint is written, or that one is unusable."""
        if "unusable" in saved:
            self._why_checkpoint_unusable = saved["unusable"]
        elif "queue" in saved:
            last_reply = self._replay.last_given(saved["queue"], self._answered)
            self._checkpoints.note_half(saved["queue"], saved["n"], last_reply)
        else:
            self._checkpoints.note_whole(saved["n"], saved["path"])

    def _take_reply(self, frame: Frame) -> None:
        """Record a reply and hand on its event, unless it was recorded before."""
        if not is_reply(frame.command):
            _log.warning("the dispatcher sent %s, which is not supported", frame.command.name)
            return
        try:
            repeated = self._replay.is_repeated(frame)
        except Divergence as error:
            self._disown()
            self._need_restore(str(error), from_results=True)
            return
        if not repeated:
            self._answered += 1
            self._new_replies.append((self._answered, frame.command.code, frame.payload))
            self._deliver([meaning_of(self._answered, frame, self._now())])

    # ------------------------------------------------------------------ failures

    def _take_error(self, report: ErrorMessage) -> None:
        failure = failure_of(report, self._now())
        was_ready = self._is_ready
        self._disown()
        if self._restored is not None and was_ready:  # else its plug-ins could not be loaded
            # The checkpoint may be the cause. Later ones continue it, and earlier ones were written like it.
            why, path = failure.reason, self._restored.path
            _log.warning("%s; it was restored from %s, so its checkpoints are left aside", why, path)
            self._checkpoints.forget_new()
            self._checkpoints.forget_all()
        self._deliver([failure])

    def _on_silence(self, process: DispatcherProcess) -> None:
        if process is self._process:
            self._disown()
            self._report_end(f"the dispatcher gave no sign of life for {self._setup.timeout:g} s")

    def _on_end(self, process: DispatcherProcess, code: int, sentence: str) -> None:
        if process is self._process and not self._is_terminated:
            self._report_end(
                f"it {self._why_checkpoint_unusable}"
                if code == CHECKPOINT_UNUSABLE and self._why_checkpoint_unusable
                else sentence
            )

    def _report_end(self, sentence: str) -> None:
        """Report the end of the process; if it has done nothing since it was restored, the checkpoint is the cause."""
        saved = self._restored
        if saved is None or not self._progress.is_still_at(saved.n):
            self._deliver([self._failed(sentence)])
            return
        self._disown()
        _log.warning("the dispatcher's checkpoint %s is left aside: %s", saved.path, sentence)
        self._checkpoints.forget(saved)
        last = self._checkpoints.last()
        since = "all recorded commands" if last is None else f"the commands since checkpoint {last.path}"
        self._need_restore(f"it receives {since} again")

    def _need_restore(self, reason: str, *, from_results: bool = False) -> None:
        self._deliver([RestoreNeeded(self._now(), reason, from_results, cause="dispatcher")])

    def _failed(self, sentence: str) -> DispatcherFailed:
        return DispatcherFailed(
            self._now(),
            message=sentence,
            traceback=self._last_output(),
            command=self._progress.first_undone(self._sender.last),
            died=True,
            cause="dispatcher",
        )

    def _last_output(self) -> str:
        path = self._setup.folder / "logs" / "dispatcher.out"
        try:
            return path.read_text(errors="replace")[-4000:]
        except OSError:
            return ""

    def _now(self) -> float:
        return self._setup.clock()


def _gpus_of_tuner(config: Config) -> Sequence[int | str]:
    """Return the GPUs of the tuner as CUDA calls them, without those that are hidden from this process."""
    if not (indices := config.get("tunerGpuIndices")):
        return ()
    from ...executors.local import names_of_gpus

    return names_of_gpus(indices)
