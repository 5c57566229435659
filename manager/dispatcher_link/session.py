"""The conversation with the dispatcher: numbered commands out, recorded replies in, restoring after a failure.

Commands are numbered from 1 in the order in which they were committed. The number never travels: both sides count.
Commands and replies are in the store. A dispatcher that failed, or whose manager was killed, is restored from its last
valid checkpoint and the commands recorded since then, which brings a seeded plug-in to the same state. Its replies are
compared with the recorded ones, which win. At the first difference the plug-in is not reproducible: it is started
again, and gets only the results so far.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...executors import Heartbeat
from ...protocol import CommandType, Frame, encode_frame, loads
from ...runner import DispatcherFailed, DispatcherReady, Event, SendCommand
from ...store import QUEUES, DispatcherRecord, RecordRow, SavedState
from ..standby import DISPATCHER_COMMAND, StandbyDispatcher
from .command import Command
from .process import DispatcherProcess, dispatcher_environment
from .replay import Divergence, Replay
from .replies import failure_of, is_reply, meaning_of

_log = logging.getLogger(__name__)
Recall = Callable[[SavedState | None], DispatcherRecord]
"""Returns what is recorded since a checkpoint, or from the beginning."""

CHECKPOINT_UNUSABLE = 3
"""The exit code of a dispatcher that cannot use the checkpoint it was given."""

# What a tuner that does not learn only notes. It waits for so many others, or so many seconds, to leave in one write:
# each write wakes the dispatcher up. A longer queue would cause a warning there.
_NOTED = frozenset((CommandType.ReportMetricData, CommandType.TrialEnd))
_MOST_UNSENT = 18
_LONGEST_UNSENT = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherSetup:
    """What a dispatcher is started with; `config` is the canonical configuration with its search space.

    A dispatcher that gives no sign of life for `timeout` seconds is replaced; a plug-in may compute longer.
    The first one may be a `standby`. With `is_silent` there is none: commands are only recorded, for the next one.
    """

    config: Mapping[str, Any]
    folder: Path
    clock: Callable[[], float]
    log_level: str = "info"
    command: Sequence[str] | None = None
    timeout: float = 600.0
    standby: StandbyDispatcher | None = None
    is_silent: bool = False


class SessionListener(Protocol):
    """The owner of a session; called on the event loop."""

    def on_event(self, event: Event) -> None:
        """Take in a reply or a failure of the dispatcher."""
        ...

    def on_divergence(self, why: str) -> None:
        """Begin a new record: the dispatcher repeats a recorded reply differently."""
        ...

    def on_unusable(self, saved: SavedState, why: str) -> None:
        """Restore the dispatcher from elsewhere: it cannot use this checkpoint."""
        ...

    def on_doubt(self, saved: SavedState, why: str) -> None:
        """Use no checkpoint any more: the dispatcher that was restored from this one failed, perhaps because of it."""
        ...

    def on_progress(self) -> None:
        """Look at the session again: frames came."""
        ...

    def on_drained(self) -> None:
        """Continue to fetch reports: the dispatcher reads again."""
        ...


class DispatcherSession:
    """One experiment's dispatcher, over all the processes it may need."""

    def __init__(self, setup: DispatcherSetup, listener: SessionListener) -> None:
        self._setup = setup
        self._listener = listener
        self._process: DispatcherProcess | None = None
        self._replaced: DispatcherProcess | None = None
        self._heartbeat: Heartbeat | None = None
        self._sent = 0
        self._is_eager = True  # every command leaves at once
        self._unsent = bytearray()
        self._unsent_count = 0
        self._flushing: asyncio.TimerHandle | None = None
        self._answered = 0
        self._new_replies: list[RecordRow] = []
        self._new_checkpoints: list[SavedState] = []
        # By queue: the command after which it saved its state, and its last reply then.
        self._marks: dict[str, tuple[int, int]] = {}
        self._replay = Replay()
        self._restored: SavedState | None = None  # what the process was started from
        self._misfit = ""  # why it cannot use that
        self._is_ready = False
        self._processed: dict[str, int] = dict.fromkeys(QUEUES, 0)
        # The last command of each kind: intermediate results, the end of a trial, and all but intermediate results.
        self._last_periodical = self._last_end = self._last_other = 0
        self._periodical_queues: tuple[str, ...] = ("assessor",)
        self._takers: dict[CommandType, Callable[[Any], None]] = {
            CommandType.Processed: self._take_processed,
            CommandType.Initialized: self._take_initialized,
            CommandType.Checkpoint: self._take_checkpoint,
            CommandType.Error: self._take_error,
            CommandType.Ping: lambda payload: None,
        }

    # ------------------------------------------------------------------ starting, restoring, ending

    async def start(self, recall: Recall, saved: SavedState | None = None, mode: str = "start") -> None:
        """Start a dispatcher, from a checkpoint if there is one, and send it what `recall` returns.

        `recall` is called when the process runs: it includes what was committed until then, so that nothing is sent
        twice or left out.
        """
        setup = self._setup
        if setup.is_silent:
            self._take_up(recall(saved))
            return
        process = DispatcherProcess(
            lambda frames: self._on_frames(process, frames),
            lambda code, why: self._on_end(process, code, why),
            self._listener.on_drained,
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
            command += ["--restore", str(setup.folder / "checkpoint" / saved.path)]
        self._process = process  # before it starts: it may end at once
        standby = setup.standby if saved is None else None
        await process.start(command, environment, setup.folder / "logs" / "dispatcher.out", standby)
        if self._process is not process:
            return  # it is being replaced already
        self._restored, self._misfit = saved, ""
        self._heartbeat = Heartbeat(
            timeout=setup.timeout, beat=self._ping, on_silence=lambda: self._on_silence(process)
        )
        if setup.command is None:
            self._heartbeat.start()  # our dispatcher replies as soon as its plug-ins are loaded
        self._take_up(recall(saved))
        process.listen()

    async def restart(self, recall: Recall, saved: SavedState | None = None, mode: str = "start") -> None:
        """Replace a failed dispatcher by a new one that gets the same commands."""
        self._disown()
        if self._replaced is not None:
            await self._replaced.kill()
        await self.start(recall, saved, mode)

    def _disown(self) -> None:
        """Ignore the present process from now on, and send it nothing."""
        self._is_ready, self._is_eager = False, True
        self._forget_unsent()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._process is not None:
            self._replaced, self._process = self._process, None

    def _take_up(self, record: DispatcherRecord) -> None:
        commands, saved = record.commands, record.saved
        # Replies that are not committed yet count, too.
        replies = [*record.replies, *self._new_replies]
        covered = saved.n if saved is not None else 0
        self._sent = commands[-1][0] if commands else covered
        self._answered = replies[-1][0] if replies else (saved.default_reply if saved else 0)
        self._processed = dict.fromkeys(QUEUES, covered)
        self._last_periodical, self._last_end, self._last_other = 0, covered, covered
        self._is_ready = False
        self._marks.clear()
        self._new_checkpoints.clear()
        self._replay = Replay(DispatcherRecord(commands, replies, saved).expected())
        self.write(map(Command.recorded, commands))

    async def terminate(self, timeout: float) -> None:
        """Let the dispatcher finish its work, and end it."""
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

    # ------------------------------------------------------------------ commands out

    def number(self, commands: Iterable[SendCommand]) -> list[Command]:
        """Give commands their numbers; they must be committed before they are written."""
        numbered = [
            Command(n, sent.command, sent.payload, sent.is_periodical)
            for n, sent in enumerate(commands, self._sent + 1)
        ]
        self._sent += len(numbered)
        return numbered

    def write(self, commands: Iterable[Command]) -> None:
        """Send committed commands; what a plug-in that does not learn would only note may wait for the next ones."""
        is_urgent = self._is_eager
        for command in commands:
            self._note_queues(command)
            self._unsent += command.frame()
            self._unsent_count += 1
            is_urgent = is_urgent or command.type not in _NOTED
        if is_urgent or self._unsent_count >= _MOST_UNSENT:
            self.flush()
        elif self._unsent and self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_LONGEST_UNSENT, self.flush)

    def flush(self) -> None:
        """Send the commands that wait, in one write."""
        unsent = bytes(self._unsent)
        self._forget_unsent()
        if unsent and self._process is not None:
            self._process.write(unsent)

    def _forget_unsent(self) -> None:
        self._unsent.clear()
        self._unsent_count = 0
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None

    def _note_queues(self, command: Command) -> None:
        """Note which queues a command goes to."""
        if command.is_periodical:
            self._last_periodical = command.n
            return
        self._last_other = command.n
        if command.type is CommandType.TrialEnd:
            self._last_end = command.n

    def _ping(self) -> None:
        if self._process is not None:
            self._process.write(encode_frame(CommandType.Ping))  # no command: it has no number

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever sent."""
        return self._sent == 0

    @property
    def is_full(self) -> bool:
        """Whether the dispatcher has so much left to read that no more reports should be fetched."""
        return self._process is not None and self._process.is_full

    @property
    def has_answered_all(self) -> bool:
        """Whether the dispatcher has done everything that it was sent."""
        return self._is_ready and all(self._processed[queue] >= self._last_of(queue) for queue in QUEUES)

    def _last_of(self, queue: str) -> int:
        """Return the number of the last command that went to a queue; 0 for the queue of a missing assessor."""
        last = self._last_other if queue == "default" else self._last_end
        if queue in self._periodical_queues:
            return max(last, self._last_periodical)
        return last if queue == "default" else 0

    # ------------------------------------------------------------------ replies in

    def take_replies(self, keep: int = 0) -> list[RecordRow]:
        """Return the replies since the last call that are to be recorded, except the last `keep`."""
        count = len(self._new_replies) - keep
        replies, self._new_replies = self._new_replies[:count], self._new_replies[count:]
        return replies

    def take_checkpoints(self) -> list[SavedState]:
        """Return the checkpoints since the last call, valid once they and the replies before are committed."""
        checkpoints, self._new_checkpoints = self._new_checkpoints, []
        return checkpoints

    def _on_frames(self, process: DispatcherProcess, frames: list[Frame]) -> None:
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
        self._listener.on_progress()

    def _take_processed(self, done: dict[str, Any]) -> None:
        self._processed[done["queue"]] = done["n"]

    def _take_initialized(self, facts: dict[str, Any]) -> None:
        self._periodical_queues = tuple(facts.get("periodical_queues", ("assessor",)))
        self._is_ready = True
        if "protocol" in facts and self._heartbeat is not None:
            self._heartbeat.start()
        wants_periodical = bool(self._periodical_queues)
        any_results = tuple(facts.get("any_results", ()))
        learns = facts.get("learns", True)
        self._is_eager = learns or wants_periodical
        ready = DispatcherReady(self._now(), wants_periodical, any_results, learns, cause="dispatcher")
        self._listener.on_event(ready)

    def _take_checkpoint(self, saved: dict[str, Any]) -> None:
        """Note that one queue has saved its state, that the whole checkpoint is written, or that one is unusable."""
        if "unusable" in saved:
            self._misfit = saved["unusable"]
            return
        n = saved["n"]
        if "queue" in saved:
            self._marks[saved["queue"]] = n, self._replay.last_given(saved["queue"], self._answered)
        elif all(self._marks.get(queue, (0, 0))[0] == n for queue in QUEUES):
            default, assessor = (self._marks[queue][1] for queue in QUEUES)
            self._new_checkpoints.append(SavedState(n, saved["path"], default, assessor))

    def _take_error(self, report: dict[str, Any]) -> None:
        failure = failure_of(report, self._now())
        was_ready = self._is_ready
        self._disown()
        if self._restored is not None and was_ready:  # else its plug-ins could not be loaded
            self._new_checkpoints.clear()  # they continue the one in doubt
            self._listener.on_doubt(self._restored, failure.reason)
        self._listener.on_event(failure)

    def _take_reply(self, frame: Frame) -> None:
        """Record a reply and hand on its event, unless it was recorded before."""
        if not is_reply(frame.command):
            _log.warning("the dispatcher sent %s, which is not supported", frame.command.name)
            return
        try:
            repeated = self._replay.is_repeated(frame)
        except Divergence as error:
            self._disown()
            self._listener.on_divergence(str(error))
            return
        if not repeated:
            self._answered += 1
            self._new_replies.append((self._answered, frame.command.code, frame.payload))
            self._listener.on_event(meaning_of(self._answered, frame, self._now()))

    # ------------------------------------------------------------------ failures

    def _on_silence(self, process: DispatcherProcess) -> None:
        if process is self._process:
            self._disown()
            self._ended(f"the dispatcher gave no sign of life for {self._setup.timeout:g} s")

    def _on_end(self, process: DispatcherProcess, code: int, sentence: str) -> None:
        if process is self._process:
            self._ended(f"it {self._misfit}" if code == CHECKPOINT_UNUSABLE and self._misfit else sentence)

    def _ended(self, sentence: str) -> None:
        """Report the end of the process: of one that did nothing since it was restored, the checkpoint is the cause."""
        saved = self._restored
        if saved is not None and all(self._processed[queue] == saved.n for queue in QUEUES):
            self._disown()
            self._listener.on_unusable(saved, sentence)
        else:
            self._listener.on_event(self._failed(sentence))

    def _failed(self, sentence: str) -> DispatcherFailed:
        last_output = self._last_output()
        return DispatcherFailed(
            self._now(),
            message=sentence,
            traceback=last_output,
            command=self._first_undone(),
            died=True,
            cause="dispatcher",
        )

    def _first_undone(self) -> int:
        """Return the number of the first command that a queue has not done; the next number if all are done."""
        late = [self._processed[queue] for queue in QUEUES if self._processed[queue] < self._last_of(queue)]
        return min(late, default=self._sent) + 1

    def _last_output(self) -> str:
        path = self._setup.folder / "logs" / "dispatcher.out"
        try:
            return path.read_text(errors="replace")[-4000:]
        except OSError:
            return ""

    def _now(self) -> float:
        return self._setup.clock()


def _gpus_of_tuner(config: Mapping[str, Any]) -> Sequence[int | str]:
    """Return the GPUs of the tuner as CUDA calls them, without those that are hidden from this process."""
    if not (indices := config.get("tunerGpuIndices")):
        return ()
    from ...executors.local import names_of_gpus

    return names_of_gpus(indices)
