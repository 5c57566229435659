"""One attempt of a command trial: any program, in a process group of its own, followed from start to end.

One `poll` waits for everything that can happen: the process ends, its spool grows, the manager asks for a
kill, a timer is due. What the process reported is read to the end before the attempt counts as ended. While
no manager acknowledges events and the outbox is full, reports wait in the spool.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from ..protocol import LED_TO, OVER_LIMIT, size_text
from ..sdk import (
    TRACEBACK,
    LineFile,
    code_digest,
    file_digest,
    file_identity,
    merged_code,
    noted_refusal,
    shortened,
)
from . import environ
from .agent_events import Ended, Event, Outbox, Report, Saved, SpoolProblem, Started
from .disk import disk_error, sync, with_cause, with_disk_error
from .job import Job
from .launcher import StartError, arguments_of, launcher_command, start_program
from .poll_sources import ExitWatch, FileWatch, Follower, PollTimers, Wake
from .processes import ProcessTree, WatchdogClient, oom_kills
from .spool import SpoolReader, set_aside
from .warm import Adopted, Launch, WarmStarts
from .watchdog import kill_all

Process = subprocess.Popen[bytes] | Adopted

_READ_BYTES = 65536
MEMORY_EVERY = 1.0
# Scripts and settings that a command may name.
_CODE = (".py", ".sh", ".bash", ".r", ".R", ".jl", ".pl", ".rb", ".lua", ".js", ".ts", ".ipynb")
_CODE += (".yaml", ".yml", ".toml", ".cfg", ".ini")
# How long (s) after a trial that somebody killed its agent may be ended, too: a machine that shuts down, a service that
# stops and Ray, which ends a worker's children before the worker, mean both.
_END_TOGETHER = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTools:
    """What an agent lends to the running attempt."""

    outbox: Outbox
    watch: FileWatch
    watchdog: WatchdogClient
    warm: WarmStarts
    wake: Wake
    clock: Callable[[], float]
    environment: Mapping[str, str]


class CommandTrial:
    """Runs one attempt in the calling thread; `kill` and `pause` may be called from any other."""

    def __init__(self, job: Job, tools: AgentTools) -> None:
        self.job = job
        self.pid: int | None = None
        self._tools = tools
        self._folder = Path(job.folder)
        self._spool = Path(job.spool)
        self._mark = environ.mark(str(self._spool))
        self._reader = SpoolReader(
            **job.who, first_sequence=job.first_sequence, clock=tools.clock, metric=job.keep.metric
        )
        self._checkpoints = job.checkpoints()
        self._requested_graces: deque[float] = deque()  # one for each request to end the attempt
        self._place: tuple[int, int] | None = None  # of the spool, once it is made
        self._kill_was_asked = False  # else the attempt is to pause
        self._kill_deadline: float | None = None  # monotonic time at which grace ends
        self._over_limit: str | None = None
        self._oom_kills = 0  # of this machine, before the start
        self._left_running = False  # processes, when the command ended by itself
        self._named_files: dict[str, str] = {}  # of the command: digests by path

    def kill(self, grace: float) -> None:
        """Ask for the end of the attempt: SIGTERM, then SIGKILL after `grace` seconds."""
        self._kill_was_asked = True
        self._request_end(grace)

    def pause(self, grace: float) -> None:
        """End the attempt as `kill` does; its successor continues from the last checkpoint saved by then."""
        self._request_end(grace)

    def _request_end(self, grace: float) -> None:
        self._requested_graces.append(grace)
        self._tools.wake.set()

    @property
    def is_recorded(self) -> bool:
        """Whether the reports go into the folder, which may have been replaced since the start."""
        return self._place is None or file_identity(self._spool) == self._place

    def run(self) -> Ended:
        """Run the attempt and return its end; all its reports have been sent by then.

        Raises what prevents the start, unless it is the fault of the command.
        """
        try:
            process = self._start()
        except StartError as error:
            code, now = error.exit_code, self._tools.clock()
            return self._record(Ended(**self.job.who, exit_code=code, error=str(error), time=now))
        note = self._tools.warm.note()
        self._tools.outbox.put(Started(**self.job.who, pid=process.pid, time=self._tools.clock(), note=note))
        try:
            return self._record(self._attend(process))
        except Exception:  # noqa: BLE001 - a fault of the agent: without its end, the trial would hang
            error = f"the agent failed: {traceback.format_exc()}"
            kill_all(process.pid, self._mark)
            process.wait()
            self._tools.watchdog.release()
            return self._record(Ended(**self.job.who, error=error, infra=True, time=self._tools.clock()))

    def _attend(self, process: Process) -> Ended:
        """Follow the process to its end; return that after all reports have been sent."""
        self._tools.watchdog.watch(process.pid)
        tree = ProcessTree(process.pid, self._mark)
        with open(self._spool, "rb", buffering=0) as spool:
            follower = Follower(spool.fileno(), self._reader, self._send)
            self._follow(process, tree, follower)
            self._read_if(True, follower)  # a trial that has its result need not be searched for others below
            returncode = self._end(process, tree)
            follower.read_all(self._tools.outbox.wait_for_room)
        ended = self._end_of(returncode)  # before anything is removed: then a full disk is full no longer
        if self.job.node == 0:
            self._checkpoints.tidy()
        return ended

    def _send(self, events: list[Event]) -> None:
        """Send events; admit the checkpoints among them first, and remove older ones afterwards."""
        outbox = self._tools.outbox
        if all(isinstance(event, Report) for event in events):  # nearly always
            outbox.put_all(self._sync_spool(events))
            return
        admitted = [self._checkpoints.admit(event) if isinstance(event, Saved) else event for event in events]
        outbox.put_all(self._sync_spool(list(map(self._explained, admitted))))
        self._checkpoints.prune(outbox.last, outbox.confirmed, outbox.sent)

    def _explained(self, event: Event) -> Event:
        """Blame a full disk for what a script could not write: half a line, a folder that is not there."""
        if (
            isinstance(event, SpoolProblem)
            and not event.infra
            and (why := disk_error(self.job.run.folder)) is not None
        ):
            return replace(event, message=f"{event.message}: {why}", infra=True)
        return event

    def _sync_spool(self, events: list[Event]) -> list[Event]:
        """Force the spool to the disk if the experiment asks for it; return the events and any problem with it."""
        if self.job.run.synced:
            try:
                sync(self._spool)
            except OSError as error:
                text = f"the reports cannot be forced to the disk: {error}"
                return [*events, SpoolProblem(**self.job.who, message=text, infra=True)]
        return events

    def _start(self) -> Process:
        job, run = self.job, self.job.run
        job.check()
        os.makedirs(job.checkpoint_folder, exist_ok=True)
        Path(job.parameters_file).write_text(job.parameters, encoding="utf-8")
        set_aside(self._spool)
        LineFile(str(self._spool)).close()  # there before the watch, and before a shell script looks for it
        self._place = file_identity(self._spool)
        if run.synced:
            sync(self._spool, run.folder)
        environment = job.environment(self._tools.environment)
        directory = run.code_directory or os.getcwd()
        arguments = arguments_of(job.command, directory, environment, shell=run.shell)
        self._named_files = dict(_files_named(job.command, directory))
        if job.team is not None:
            arguments = launcher_command(arguments, job.team)
        self._tools.watch.watch(str(self._spool))
        self._tools.watchdog.expect(self._mark)
        self._oom_kills = oom_kills()
        with open(self._log("stdout"), "wb") as stdout, open(self._log("stderr"), "wb") as stderr:
            process = self._launch(
                Launch(
                    arguments=arguments,
                    directory=directory,
                    environment=environment,
                    mark=self._mark,
                    stdout=stdout.fileno(),
                    stderr=stderr.fileno(),
                )
            )
        self.pid = process.pid
        return process

    def _launch(self, launch: Launch) -> Process:
        how = self.job.run.trial_start
        if how == "cold" or self.job.team is not None:  # a team is started by its launcher
            return spawn(launch)
        warm = self._tools.warm
        if (process := warm.start(launch)) is not None:
            return process
        cold = spawn(launch)
        warm.prepare(launch, Path(self.job.run.folder, "agents"), eager=how == "warm")
        return cold

    def _log(self, name: str) -> Path:
        return Path(self.job.log(name))

    def _follow(self, process: Process, tree: ProcessTree, follower: Follower) -> None:
        """Return when the process has ended; it is not reaped yet."""
        tools = self._tools
        timers = PollTimers(tools.watch.interval, MEMORY_EVERY if self.job.run.memory_limit else None)
        with ExitWatch(process) as ended:
            poll = select.poll()
            for descriptor in (ended.descriptor, tools.wake.fileno(), tools.watch.descriptor):
                if descriptor is not None:
                    poll.register(descriptor, select.POLLIN)
            while True:
                may_read = follower.behind and not tools.outbox.is_full
                timeout = timers.timeout(0.0 if may_read else None, self._kill_deadline)
                ready = {descriptor for descriptor, _ in poll.poll(timeout)}
                if ended.descriptor in ready:
                    return
                if tools.wake.fileno() in ready:
                    tools.wake.clear()
                self._read_if(tools.watch.descriptor is None or tools.watch.descriptor in ready, follower)
                self._check_memory(timers, tree)
                self._kill_if_asked(tree)

    def _read_if(self, changed: bool, follower: Follower) -> None:
        if changed:
            self._tools.watch.clear()
        if not changed and not follower.behind:
            return
        if self._tools.outbox.is_full:
            follower.behind = True  # `on_room` of the outbox wakes us
        else:
            follower.read()

    def _check_memory(self, timers: PollTimers, tree: ProcessTree) -> None:
        limit = self.job.run.memory_limit
        if limit is None or self._over_limit or not timers.memory_due():
            return
        # Forked workers share pages: count these once before the trial is killed for them.
        if tree.memory() > limit and (used := tree.proportional_memory()) > limit:
            sizes = [size_text(size, is_memory=True) for size in (used, limit)]
            self._over_limit = f"used {sizes[0]}, {OVER_LIMIT} {sizes[1]}"
            self._requested_graces.append(0.0)

    def _kill_if_asked(self, tree: ProcessTree) -> None:
        while self._requested_graces:
            deadline = time.monotonic() + self._requested_graces.popleft()
            if self._kill_deadline is None:
                tree.signal_group(signal.SIGTERM)  # at once; then the processes that left the group
                tree.signal_group(signal.SIGCONT)
                tree.signal_orphans(signal.SIGTERM)
            self._kill_deadline = (
                deadline if self._kill_deadline is None else min(deadline, self._kill_deadline)
            )
        if self._kill_deadline is not None and time.monotonic() >= self._kill_deadline:
            tree.kill(self._kill_deadline)

    def _end(self, process: Process, tree: ProcessTree) -> int:
        """Kill what the process left running, then reap it: until then no other group can get its number.

        Return its exit code, or the negative number of a signal.
        """
        if self._kill_deadline is not None:
            tree.kill(self._kill_deadline)
        elif not self._reader.has_final:
            self._left_running = any(pid != process.pid for pid in tree.members())
        tree.signal_group(signal.SIGKILL)
        returncode = process.wait()
        if returncode in (-signal.SIGKILL, -signal.SIGTERM) and self._kill_deadline is None:
            self._await_own_end()
        self._tools.watchdog.release()
        return returncode

    def _await_own_end(self) -> None:
        """Give the agent time to be killed as well, or to be asked to leave: then the trial has not failed."""
        poll = select.poll()
        poll.register(self._tools.wake.fileno(), select.POLLIN)
        deadline = time.monotonic() + _END_TOGETHER
        while not self._requested_graces and (left := deadline - time.monotonic()) > 0:
            poll.poll(left * 1000)
            self._tools.wake.clear()
        if self._requested_graces:
            self._kill_deadline = time.monotonic()

    def _end_of(self, returncode: int) -> Ended:
        code, number = (None, -returncode) if returncode < 0 else (returncode, None)
        killed = self._kill_deadline is not None and self._over_limit is None
        ended_well = returncode == 0 and self._reader.has_final  # by itself, just before the kill
        paused = killed and not self._kill_was_asked and not ended_well
        loaded = merged_code([{"files": self._named_files}, self._reader.code or {}])
        error = self._over_limit
        if error is None and not killed and not ended_well:
            error = self._why_failed(returncode)
        return Ended(
            **self.job.who,
            exit_code=code,
            signal=number,
            error=error,
            killed=killed and not paused,
            paused=paused,
            out_of_memory=self._over_limit is not None or (not killed and self._was_oom_killed(returncode)),
            unasked=self._is_unasked(),
            left_running=self._left_running,
            code=None if loaded is None else code_digest(loaded),
            loaded=loaded,
            time=self._tools.clock(),
        )

    def _why_failed(self, returncode: int) -> str | None:
        """Return the last words of a script, and what the machine refused: a full disk may have taken the words.

        A script that cannot write its result may still end with exit code 0.
        """
        said = last_lines(self._log("stderr")) if returncode else None
        if (refused := noted_refusal(self._spool)) is not None:
            return with_cause(said, refused)
        return with_disk_error(said, self.job.run.folder)

    def _is_unasked(self) -> bool:
        """Return whether a script reported whose parameters no process has read, though its command has none."""
        if not self._reader.unasked or self.job.command != self.job.run.command:
            return False
        try:
            file = os.stat(self.job.parameters_file)
        except OSError:
            return False
        return file.st_atime_ns <= file.st_mtime_ns

    def _was_oom_killed(self, returncode: int) -> bool:
        """Return whether the kernel killed the trial, or what its shell waited for, to free memory."""
        by_kill = returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
        return by_kill and oom_kills() > self._oom_kills

    def _record(self, ended: Ended) -> Ended:
        """Write into the spool how the attempt ended, so that this is known even if the agent dies now."""
        # The manager still gets the event; on a full disk there is nowhere to say more.
        with contextlib.suppress(OSError), contextlib.closing(LineFile(str(self._spool))) as file:
            line = orjson.dumps({"ended": ended.outcome()}).decode()
            file.append("\n" + line if self._reader.inside_line else line)
            if self.job.run.synced:
                file.sync()
        return ended


def _files_named(command: str, directory: str) -> Iterator[tuple[str, str]]:
    """Yield path and digest of each program, script or setting in the code directory that a command names.

    Other files may be what it writes.

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> _ = Path(directory, "train.py").write_text("x = 1")
    >>> _ = Path(directory, "train.log").write_text("started")
    >>> list(_files_named("python train.py --data=/etc/passwd > train.log", directory))
    [('train.py', '59705646f73aad2b')]
    """
    root = os.path.join(os.path.abspath(directory), "")
    for word in set(re.split(r"[\s='\"();&|<>]+", command)):
        path = os.path.normpath(os.path.join(root, word))
        if not (word and path.startswith(root) and os.path.isfile(path)):
            continue
        if not (path.endswith(_CODE) or os.access(path, os.X_OK)):
            continue
        if (digest := file_digest(path)) is not None:
            yield path[len(root) :], digest


def spawn(launch: Launch) -> subprocess.Popen[bytes]:
    """Start a command cold."""
    return start_program(
        list(launch.arguments),
        stdin=subprocess.DEVNULL,
        stdout=launch.stdout,
        stderr=launch.stderr,
        cwd=launch.directory,
        env=launch.environment,
        start_new_session=True,
    )


def last_lines(path: Path, limit: int = _READ_BYTES) -> str | None:
    """Return the end of a file as whole lines: of the last traceback in its last `limit` bytes, the beginning, too.

    The tracebacks of the exceptions that led to the last one belong to it.
    """
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            data = file.read()
    except OSError:
        return None
    if size > limit:
        data = data.partition(b"\n")[2] or data
    text = data.decode("utf-8", "replace").strip()
    return shortened(text[_start_of_last_traceback(text) :]) or None


def _start_of_last_traceback(text: str) -> int:
    start = text.rfind(TRACEBACK)
    while start > 0 and text[:start].rstrip().endswith(LED_TO):
        if (earlier := text.rfind(TRACEBACK, 0, start)) < 0:
            break
        start = earlier
    return max(0, start)
