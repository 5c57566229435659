"""The trial agent, apart from how messages reach it: a long-lived worker that runs one attempt after another.

Two carriers drive it: a Unix socket (`unix_server`) and a Ray actor. Both pass the manager's requests to `handle`
and collect events from the outbox; the thread that calls `run` runs the trials.

* An attempt runs once. Its start may come again, from the same manager or the next one: what the agent has taken on
  (`_seen`) does not run again. If its end is no longer in the outbox, the reply is `Forgotten`, and the manager reads
  the spool, as it does when the agent itself is gone.
* What happened is in a spool before it is in the outbox. The outbox may be lost with this process, the spool is not.
* The outbox keeps every event until a manager has acknowledged it, which means that the manager has committed it.
* Requests come from any thread and may change `_current`, `_waiting` and `_seen` only under the lock. Only the thread
  that calls `run` starts an attempt and waits for it: a function trial needs the main thread.
* An agent without a manager ends its attempt and itself after `orphan_timeout`: nothing runs unless a manager may
  return for it.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

from ..sdk import LineFile, file_identity
from . import environ
from .agent_events import Ended, Forgotten, Outbox, encode_event
from .command_trial import AgentTools, CommandTrial
from .disk import sync
from .forks import ending_forks
from .function_output import FunctionOutput
from .function_trial import FunctionLoader, FunctionTrial
from .job import Job
from .messages import (
    Batch,
    FilePart,
    Hello,
    HelloReply,
    Kill,
    Message,
    MessageError,
    OngoingAttempt,
    Pause,
    Ping,
    Poll,
    ReadFile,
    Reply,
    Request,
    RunSpec,
    Shutdown,
    Start,
    decode_request,
)
from .poll_sources import Wake, best_watch
from .processes import WatchdogClient
from .warm import WarmStarts

SEEN_LIMIT = 1000  # attempts remembered, so that a start that is sent twice runs once
HOLD = 0.002  # seconds for which the events of a short function trial wait to leave together
IDLE_TIMEOUT = 60.0  # before the first `configure`
MAX_PART = 65536  # bytes in the reply to `ReadFile`
RETRY_PAUSE = 1.0  # seconds after which the next attempt may find the machine able to run it
LAST_RESORT = 10.0  # seconds beyond the grace for a function that cannot be interrupted

Attempt = CommandTrial | FunctionTrial


@dataclass(slots=True)
class _Known:
    """An attempt that the agent has taken on; `ended` is the number of the event of its end."""

    identity: tuple[object, ...]
    ended: int | None = None


class Agent:
    """Runs attempts, one at a time, and keeps their events until a manager has acknowledged them.

    `handle` and `next_events` may be called from any thread; `run` belongs to one (the main thread, if
    possible: a function trial runs in it). `on_events` is called when events can be collected. An agent that `is_alone`
    in its process gives function trials the descriptors 1 and 2.
    """

    def __init__(
        self,
        agent_id: str,
        spool_directory: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        environment: Mapping[str, str] | None = None,
        is_alone: bool = False,
    ) -> None:
        self.agent_id = agent_id
        self.outbox = Outbox()
        self.idle_since: float | None = time.monotonic()
        self.interrupt: Callable[[], None] | None = None  # breaks into a function trial when the agent leaves
        self._spool_path = Path(spool_directory, f"{agent_id}.jsonl")
        self._spool: LineFile | None = None
        self._spool_place: tuple[int, int] | None = None
        # Another agent of this name has left a spool, which may name the same attempts.
        self._spool_was_there = False
        self._functions = FunctionLoader()
        self._output = FunctionOutput(Path(spool_directory, agent_id)) if is_alone else None
        base = environ.starting_environment() if environment is None else environment
        watchdog = WatchdogClient()
        self._tools = AgentTools(
            outbox=self.outbox,
            watch=best_watch(),
            watchdog=watchdog,
            warm=WarmStarts(watchdog),
            wake=Wake(),
            clock=clock,
            environment=environ.base_environment(base),
        )
        self.outbox.on_room = self._tools.wake.set
        self._run_spec: RunSpec | None = None
        # Reentrant: a signal handler may ask for the shutdown while the same thread holds it.
        self._lock = threading.RLock()
        self._inbox: SimpleQueue[Job | None] = SimpleQueue()
        self._waiting: dict[tuple[str, int], Job] = {}
        self._seen: dict[tuple[str, int], _Known] = {}
        self._current: Attempt | None = None
        self._stopping = False
        self._end_was_asked = threading.Event()  # the current attempt is to end

    @property
    def orphan_timeout(self) -> float:
        """Seconds that the agent stays without a manager; only a manager would end a function that ignores a kill."""
        if self._run_spec is None:
            return IDLE_TIMEOUT
        is_to_end = isinstance(self._current, FunctionTrial) and self._current.is_to_end
        return self._run_spec.grace if is_to_end else self._run_spec.orphan_timeout

    def handle(self, message: Message, poll: Callable[[int], None] | None = None) -> Reply | None:
        """Do what a message asks and return its reply, if any; an invalid message gets an `error`.

        A link that replies to polls later passes `poll`, which is called with the cursor.
        """
        try:
            request = decode_request(message)
            if isinstance(request, Poll) and poll is not None:
                return poll(request.after)
            return self._do(request)
        except (MessageError, TypeError, ValueError, OSError) as error:
            return {"error": f"{message.get('op')}: {type(error).__name__}: {error}"}

    def _do(self, request: Request) -> Reply | None:
        match request:
            case RunSpec():
                self._run_spec = request
            case Start():
                self._start(request)
            case Kill() | Pause():
                self._end(request)
            case Poll():
                return self.next_events(request.after, 0.0)
            case Hello():
                return self._hello()
            case Ping():
                return {"pong": self.agent_id}
            case ReadFile():
                return read_part(self._configured().folder, request.path, request.offset, request.limit)
            case Shutdown():
                self.shutdown()
        return None

    def next_events(self, after: int, timeout: float) -> Batch:
        """Wait up to `timeout` seconds for events numbered above `after`; forget those up to it."""
        events, cursor = self.outbox.wait(after, timeout)
        return {"events": [encode_event(event) for event in events], "cursor": cursor}

    def run(self) -> None:
        """Run the attempts that `start` messages ask for; return after a shutdown."""
        while not self._stopping:
            job = self._inbox.get()
            if job is not None and not self._stopping:
                self._run(job)
        with ending_forks():
            self._functions.stable.close()
        if self._output is not None:
            self._output.close()
        self._tools.warm.close()
        self._tools.watchdog.close()

    def close(self) -> None:
        """Release what the agent holds, after `run` has returned and no more messages come."""
        self._tools.watchdog.close()
        self._tools.watch.close()
        self._tools.wake.close()
        if self._spool is not None:
            self._spool.close()

    def shutdown(self) -> None:
        """Kill what runs and let `run` return; may be called from any thread and from a signal handler."""
        with self._lock:
            first, self._stopping = not self._stopping, True
            self._end_was_asked.set()
            self.outbox.close()
            if self._current is not None:
                self._current.kill(self._current.job.run.grace)
        self._inbox.put(None)
        if first and self.in_user_code and self.interrupt is not None:
            self.interrupt()

    def give_up(self, why: str) -> NoReturn:
        """End this process at once; a function that runs in it fails, and its spool says why."""
        with self._lock:
            if isinstance(self._current, FunctionTrial):
                self._current.give_up(why)
        print(why, file=sys.stderr, flush=True)
        os._exit(1)

    @property
    def grace(self) -> float:
        """Seconds between asking a trial to end and forcing it to."""
        return 0.0 if self._run_spec is None else self._run_spec.grace

    @property
    def in_user_code(self) -> bool:
        """Whether a function trial is inside the user's function."""
        return isinstance(self._current, FunctionTrial) and self._current.in_user_code

    def _hello(self) -> HelloReply:
        with self._lock:
            running = [] if self._current is None else [_running(self._current.job, self._current.pid)]
            running += [_running(job, None) for job in self._waiting.values()]
            return {
                "agent": self.agent_id,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "running": running,
                "seen": [*self._seen],
            }

    def _start(self, start: Start) -> None:
        job = Job.of(start, self._configured())
        with self._lock:
            is_to_run = not self._stopping and self._take_on(job)
        if not is_to_run:
            self.outbox.announce()
            return
        if job.run.kind == "function":
            self.outbox.hold(HOLD)
        self._inbox.put(job)

    def _take_on(self, job: Job) -> bool:
        """Note an attempt; return whether it is to run. One that an agent of this name has run does not run again."""
        if (known := self._seen.get(job.key)) is not None:
            self._reply_to_repeated_start(job, known)
            return False
        self._remember(job)
        if job.again and job.has_run(self._spool_path):
            self._seen[job.key].ended = self.outbox.add((Forgotten(**job.who),))
            return False
        self._waiting[job.key] = job
        self.idle_since = None
        return True

    def _reply_to_repeated_start(self, job: Job, known: _Known) -> None:
        """Reply to the start of a known attempt: it runs, or its end was acknowledged, perhaps by an earlier manager.

        If the manager's store is an older copy, the attempt may be another one, and this agent has nothing to report.
        """
        if known.identity != job.identity:
            self.shutdown()
        elif not self._is_recorded(job) or (known.ended or sys.maxsize) <= self.outbox.confirmed:
            self.outbox.add((Forgotten(**job.who),))

    def _is_recorded(self, job: Job) -> bool:
        """Return whether an attempt, if it runs, reports into the folder, and not into one that was replaced since."""
        if self._current is None or self._current.job.key != job.key:
            return True
        if isinstance(self._current, CommandTrial):
            return self._current.is_recorded
        return self._spool is None or file_identity(self._spool_path) == self._spool_place

    def _remember(self, job: Job) -> None:
        self._seen[job.key] = _Known(job.identity)
        if len(self._seen) > SEEN_LIMIT:
            del self._seen[next(iter(self._seen))]

    def _end(self, request: Kill | Pause) -> None:
        key, paused = (request.trial, request.attempt), isinstance(request, Pause)
        with self._lock:
            if (job := self._waiting.pop(key, None)) is not None:
                self._note_if_idle()
                now = self._tools.clock()
                self._add_end(Ended(**job.who, killed=not paused, paused=paused, time=now))
            elif (attempt := self._current) is not None and attempt.job.key == key:
                grace = attempt.job.run.grace if request.grace is None else request.grace
                (attempt.pause if paused else attempt.kill)(grace)
                self._end_was_asked.set()
        self.outbox.announce()

    def _note_if_idle(self) -> None:
        if self._current is None and not self._waiting:
            self.idle_since = time.monotonic()

    def _configured(self) -> RunSpec:
        if self._run_spec is None:
            raise ValueError("the agent must be configured before it starts trials or reads files")
        return self._run_spec

    def _run(self, job: Job) -> None:
        """Run one attempt to its end; send its `ended` event when the agent is free again."""
        try:
            attempt = self._begin(job)
            if attempt is None:
                return
            ended = attempt.run()
        except ValueError as error:  # a NUL in the command or the environment
            ended = self._failed(job, f"cannot start the trial: {error}")
        except OSError as error:
            ended = self._failed(job, f"cannot start the trial: {error}", infra=True)
        except Exception:  # noqa: BLE001 - a fault of the agent: it must stay usable, and the trial must end
            ended = self._failed(job, f"the agent failed: {traceback.format_exc()}", infra=True)
        if ended.infra:  # no event says that the machine is well again
            self._end_was_asked.wait(RETRY_PAUSE)
        with self._lock:
            self._waiting.pop(job.key, None)  # still there if it could not be made the current one
            self._current = None
            self._note_if_idle()
            is_last = not self._waiting or self._stopping
            self._add_end(ended, urgent=is_last)
        self.outbox.announce()  # a manager that reads slowly must not hold the lock

    def _add_end(self, ended: Ended, *, urgent: bool = True) -> None:
        number = self.outbox.add((ended,), urgent=urgent)
        if (known := self._seen.get((ended.trial, ended.attempt))) is not None:
            known.ended = number

    def _failed(self, job: Job, why: str, *, infra: bool = False) -> Ended:
        return Ended(**job.who, error=why, infra=infra, time=self._tools.clock())

    def _begin(self, job: Job) -> Attempt | None:
        """Make the attempt the current one; return None if it was killed while it waited."""
        attempt = self._attempt(job)
        with self._lock:
            if self._waiting.pop(job.key, None) is None:
                return None
            self._current = attempt
            if not self._stopping:
                self._end_was_asked.clear()
        if self._waiting:
            self.outbox.hold_on(HOLD)
        return attempt

    def _attempt(self, job: Job) -> Attempt:
        if job.run.kind == "command":
            return CommandTrial(job, self._tools)
        if self._spool is None:
            self._spool_path.parent.mkdir(parents=True, exist_ok=True)
            self._spool_was_there = self._spool_path.exists()
            spool = LineFile(str(self._spool_path))
            self._spool_place = file_identity(self._spool_path)
            if job.run.synced:
                sync(self._spool_path, job.run.folder)
            self._spool = spool
        spool, clock = self._spool, self._tools.clock
        trial = FunctionTrial(job, self._functions, spool, self.outbox, clock, self._output)
        if self._spool_was_there:
            trial.record_new_beginning()
        return trial


def _running(job: Job, pid: int | None) -> OngoingAttempt:
    return {"trial": job.trial, "attempt": job.attempt, "pid": pid}


def read_part(folder: str, path: str, offset: int, limit: int) -> FilePart:
    """Return up to `limit` bytes (at most `MAX_PART`) of a file from `offset`, and the size of the file.

    Raises ValueError when `path` leads out of the folder, and OSError when the file cannot be read.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "stdout").write_text("epoch 1")
    >>> read_part(folder, "stdout", 6, 100)
    {'data': b'1', 'size': 7}
    """
    root = Path(folder).resolve()
    file_path = (root / path).resolve()
    if not file_path.is_relative_to(root):
        raise ValueError(f"{path!r} leads out of the experiment's folder")
    with open(file_path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(offset)
        return {"data": file.read(max(0, min(limit, MAX_PART))), "size": size}
