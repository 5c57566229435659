"""The conversation with the dispatcher: numbered commands out, recorded replies in, and the way back after a failure.

Commands are numbered from 1 in the order in which they were committed; the number of a command never travels, both
sides count. What was sent and what came back is in the store. A dispatcher that failed (or a manager that was killed)
is brought back by sending a fresh dispatcher all recorded commands: a seeded plug-in then stands where it stood. Its
replies are compared with the recorded ones; the recorded ones win. At the first difference the plug-in is not
reproducible: it is started once more and only told the results so far (ImportData).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..protocol import CommandType, Frame, encode_frame, loads
from .dispatcher_process import DispatcherProcess, dispatcher_command, dispatcher_environment
from .events import (
    DispatcherFailed,
    DispatcherReady,
    Event,
    KillVerdict,
    NoMoreParameters,
    ParametersArrived,
)

__all__ = ["DispatcherSession", "DispatcherSetup", "Record"]

_log = logging.getLogger(__name__)
Record = tuple[int, str, str]
Conversation = tuple[Sequence[Record], Sequence[Record]]
Recall = Callable[[], Conversation]
_ON_ASSESSOR_QUEUE = frozenset({CommandType.KillTrialJob, CommandType.Pause})


@dataclass(frozen=True, slots=True)
class DispatcherSetup:
    """What a dispatcher is started with; `config` is the canonical configuration with its search space."""

    config: Mapping[str, Any]
    folder: Path
    clock: Callable[[], float]
    log_level: str = "info"
    command: Sequence[str] | None = None


class DispatcherSession:
    """One experiment's dispatcher, over all the processes it may need."""

    def __init__(self, setup: DispatcherSetup, deliver: Callable[[Event], None]) -> None:
        self._setup = setup
        self._deliver = deliver
        self._process: DispatcherProcess | None = None
        self._replaced: DispatcherProcess | None = None
        self._ignores_replies = False
        self._sent = 0
        self._answered = 0
        self._new_replies: list[Record] = []
        self._expected: dict[bool, deque[tuple[str, str]]] = {}
        self._processed = {"default": 0, "assessor": 0}
        self._last = {"default": 0, "assessor": 0}
        self._periodical_queues: tuple[str, ...] = ("assessor",)
        self.on_divergence: Callable[[str], None] = lambda why: None
        self.on_unclogged: Callable[[], None] = lambda: None

    # ------------------------------------------------------------------ starting, restoring, ending

    async def start(self, recall: Recall, mode: str = "start") -> None:
        """Start a dispatcher and send it what `recall` gives, if it gives anything.

        `recall` is called when the process is there: what is committed until then is part of what it gives, so that
        nothing is sent twice or left out.
        """
        process = DispatcherProcess(
            lambda frames: self._on_frames(process, frames), lambda code, why: self._on_end(process, why)
        )
        process.on_unclogged = self.on_unclogged
        setup = self._setup
        environment = dispatcher_environment(
            setup.folder,
            mode=mode,
            log_level=setup.log_level,
            gpu_indices=setup.config.get("tunerGpuIndices") or (),
        )
        command = setup.command or dispatcher_command(setup.config)
        await process.start(command, environment, setup.folder / "logs" / "dispatcher.out")
        self._process = process
        self._take_up(recall())

    async def restart(self, recall: Recall, mode: str = "start") -> None:
        """Replace a failed dispatcher by a fresh one that is told the same."""
        self._disown()
        if self._replaced is not None:
            await self._replaced.kill()
        await self.start(recall, mode)

    def _disown(self) -> None:
        """From now on what the present process says does not count, and nothing is sent to it."""
        if self._process is not None:
            self._replaced, self._process = self._process, None

    def _take_up(self, conversation: Conversation) -> None:
        commands, replies = conversation
        # What came in and is not committed yet was said all the same.
        replies = [*replies, *self._new_replies]
        self._sent = commands[-1][0] if commands else 0
        self._answered = replies[-1][0] if replies else 0
        self._processed = {"default": 0, "assessor": 0}
        self._last = {"default": 0, "assessor": 0}
        self._expect(replies)
        self.write(commands)

    async def terminate(self, timeout: float) -> None:
        """Let the dispatcher finish what it does, and end it."""
        for process in (self._replaced, self._process):
            if process is not None:
                await process.terminate(timeout)

    @property
    def pid(self) -> int | None:
        """The process id of the present dispatcher."""
        return self._process.pid if self._process is not None else None

    # ------------------------------------------------------------------ commands out

    def number(self, commands: Iterable[tuple[CommandType, str]]) -> list[Record]:
        """Give commands their numbers; they must be committed before they are written."""
        numbered = []
        for command, payload in commands:
            self._sent += 1
            numbered.append((self._sent, command.value.decode(), payload))
        return numbered

    def write(self, commands: Iterable[Record]) -> None:
        """Send committed commands."""
        data = bytearray()
        for n, code, payload in commands:
            command = CommandType(code.encode())
            for queue in self._queues(command, payload):
                self._last[queue] = n
            data += encode_frame(command, payload)
        if data and self._process is not None:
            self._process.write(bytes(data))

    def _queues(self, command: CommandType, payload: str) -> tuple[str, ...]:
        """The queues of the dispatcher that a command goes to."""
        if command is CommandType.TrialEnd:
            return "default", "assessor"
        if command is CommandType.ReportMetricData and '"type": "PERIODICAL"' in payload:
            return self._periodical_queues
        return ("default",)

    @property
    def is_new(self) -> bool:
        """Was nothing ever sent?"""
        return self._sent == 0

    @property
    def is_clogged(self) -> bool:
        """Is so much unread by the dispatcher that no more results should be fetched?"""
        return self._process is not None and self._process.is_clogged

    @property
    def has_answered_all(self) -> bool:
        """Has the dispatcher done everything that it was sent?"""
        return all(self._processed[queue] >= last for queue, last in self._last.items())

    # ------------------------------------------------------------------ replies in

    def ignore_replies(self) -> None:
        """Take in no more of what the dispatcher proposes or decides; a later manager will hear it as new."""
        self._ignores_replies = True

    def take_replies(self) -> list[Record]:
        """The replies to be recorded since the last call."""
        replies, self._new_replies = self._new_replies, []
        return replies

    def _expect(self, replies: Iterable[Record]) -> None:
        self._expected = {True: deque(), False: deque()}
        for _, code, payload in replies:
            self._expected[CommandType(code.encode()) in _ON_ASSESSOR_QUEUE].append((code, payload))

    def _on_frames(self, process: DispatcherProcess, frames: list[Frame]) -> None:
        for frame in frames:
            if process is not self._process:
                return  # nothing that it says counts any more: it is being replaced
            if frame.command is CommandType.Processed:
                told = loads(frame.payload)
                self._processed[told["queue"]] = told["n"]
            elif frame.command is CommandType.Initialized:
                told = loads(frame.payload) if frame.payload else {}
                self._periodical_queues = tuple(told.get("periodical_queues", ("assessor",)))
                self._deliver(DispatcherReady(self._now(), bool(self._periodical_queues)))
            elif frame.command is CommandType.Error:
                self._deliver(self._failure(loads(frame.payload)))
            elif not self._ignores_replies and not self._is_repeated(frame):
                self._record(frame)
        self.on_progress()

    def on_progress(self) -> None:
        """Called after each batch of frames; the manager may hang itself in here."""

    def _is_repeated(self, frame: Frame) -> bool:
        """Was this reply recorded before? Then it is only compared."""
        expected = self._expected.get(frame.command in _ON_ASSESSOR_QUEUE)
        if not expected:
            return False
        code, payload = expected.popleft()
        if code != frame.command.value.decode() or not _same(payload, frame.payload):
            self._disown()
            self.on_divergence(f"it answered {frame.payload} where it had answered {payload}")
        return True

    def _record(self, frame: Frame) -> None:
        self._answered += 1
        self._new_replies.append((self._answered, frame.command.value.decode(), frame.payload))
        if frame.command is CommandType.NewTrialJob:
            parameter_id = loads(frame.payload).get("parameter_id")
            self._deliver(ParametersArrived(self._now(), parameter_id, frame.payload))
        elif frame.command is CommandType.NoMoreTrialJobs:
            self._deliver(NoMoreParameters(self._now()))
        elif frame.command is CommandType.KillTrialJob:
            self._deliver(self._kill(loads(frame.payload)))
        else:
            _log.warning("the dispatcher sent %s, which is not supported", frame.command.name)

    def _kill(self, told: Any) -> KillVerdict:
        if isinstance(told, dict):
            return KillVerdict(self._now(), told["trial_job_id"], told.get("reason", ""))
        return KillVerdict(self._now(), told, "condemned by the assessor")

    def _failure(self, told: dict[str, Any]) -> DispatcherFailed:
        message = f"the {told['plugin']} raised {told['type']}: {told['message']}"
        return DispatcherFailed(
            self._now(), message, told.get("where", ""), told.get("traceback", ""), told.get("command")
        )

    def _on_end(self, process: DispatcherProcess, sentence: str) -> None:
        if process is not self._process:
            return
        undone = min(self._processed.values()) + 1
        self._deliver(DispatcherFailed(self._now(), sentence, traceback=self._last_output(), command=undone))

    def _last_output(self) -> str:
        path = self._setup.folder / "logs" / "dispatcher.out"
        try:
            return path.read_text(errors="replace")[-4000:]
        except OSError:
            return ""

    def _now(self) -> float:
        return self._setup.clock()


def _same(one: str, other: str) -> bool:
    return one == other or loads(one) == loads(other)
