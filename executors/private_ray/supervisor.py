"""The supervisor: a process in a session of its own that holds the private Ray of a user (of a runtime directory).

    python -m pitchpipe.executors.private_ray.supervisor --directory DIR --listen-fd N --resources JSON

While managers use its Ray they hold a lease: a connection to the supervisor's socket (see `lease`). The
supervisor outlives them: agents are detached actors, and the manager that replaces a killed one finds them. It
ends, and its Ray with it, after the idle timeout without a lease and without an agent; the largest timeout that
a lease has asked for since the last such time counts. SIGTERM and `stop_ray` end it at once, with everything that
runs in its Ray. While Ray is starting, it also ends when the last manager that waits for it leaves.

Beside it, a cleaner waits for its end and removes what a killed supervisor could not remove itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from ...protocol import JsonObject
from ...store import json_line
from ...trial_agent import WatchdogClient
from ..tasks import in_daemon_thread
from .head import RayHead, limits_of_this_machine, take_back_signals
from .supervisor_files import (
    RayStatus,
    StartLock,
    SupervisorFiles,
    SupervisorState,
    make_temp_directory,
    remove_leftovers,
    remove_session,
    versions_here,
)

_log = logging.getLogger(__name__)

# How long (s) a new supervisor waits for its first lease.
_FIRST_LEASE = 30.0
# Ray does not report the end of an actor. While agents live without a manager, it is asked at this interval (s).
_LOOK_SOONEST, _LOOK_LATEST = 0.05, 1.0
# Marks the processes of this Ray; agents remove it from the trials' environment, by its prefix.
_SESSION = "PITCHPIPE_RAY_SESSION"
_ABANDONED = 3


class Supervisor:
    """Starts Ray and serves leases; `serve` returns when it is time to end, and then holds the start lock."""

    def __init__(
        self, files: SupervisorFiles, state: SupervisorState, lock: StartLock, head: RayHead
    ) -> None:
        self._files = files
        self._state = state
        self._lock = lock
        self._head = head
        self._idle = IdleClock()
        self._peers = 0
        self._waiting: set[asyncio.StreamWriter] = set()  # for a reply
        self._started = asyncio.Event()
        self._leave = asyncio.Event()

    async def serve(self, listener: socket.socket) -> bool:
        """Serve managers until none needs this Ray, Ray has died, or SIGTERM arrives.

        Return False if that was before Ray had started.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._leave.set)
        starting = loop.create_task(self._start())
        server = await asyncio.start_unix_server(self._serve_peer, sock=listener)
        leaving = loop.create_task(self._leave.wait())
        await asyncio.wait((starting, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            server.close()
            return False
        if (error := starting.exception()) is not None:
            self._refuse(error)
            raise error
        self._watch_ray(loop)
        idle = loop.create_task(self._idle.wait(self._head.agents))
        await asyncio.wait((idle, leaving), return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        self._leave.set()
        # A manager that cannot connect from here on waits for the lock, which the kernel releases at our end.
        with contextlib.suppress(OSError, TimeoutError):
            await self._lock.take(timeout=10.0)
        server.close()
        return True

    async def _start(self) -> None:
        address = await in_daemon_thread(self._head.start, stay=True)
        take_back_signals()
        self._state = replace(self._state, address=address, token_path=str(self._head.token_path))
        self._files.write_state(self._state)
        self._started.set()

    def _refuse(self, error: BaseException) -> None:
        """Reply that Ray failed; without a reply, a manager would assume a kill and start another supervisor."""
        why = (str(error).strip().splitlines() or [repr(error)])[-1]
        reply = {"error": f"the private Ray did not start: {why} (more in {self._files.log})"}
        for writer in self._waiting:
            writer.write(json_line(reply))

    def _watch_ray(self, loop: asyncio.AbstractEventLoop) -> None:
        """End when a vital process of Ray dies."""

        def watch(process: psutil.Process) -> None:
            process.wait()
            loop.call_soon_threadsafe(self._leave.set)

        for process in self._head.vital():
            threading.Thread(target=watch, args=(process,), daemon=True).start()

    async def _serve_peer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; its lease ends with it."""
        # The second descriptor keeps the connection open until this process, not only the loop, has ended.
        descriptor = os.dup(writer.get_extra_info("socket").fileno())
        self._peers += 1
        peer = _Peer(reader)
        try:
            while message := await peer.next_message():
                self._waiting.add(writer)
                reply = await self._reply(peer, message)
                self._waiting.discard(writer)
                writer.write(json_line(reply))
        except (OSError, ValueError, KeyError) as error:
            _log.warning("a connection failed: %r", error)
        except asyncio.CancelledError:
            return  # the loop ends; the second descriptor stays open until the process does
        self._waiting.discard(writer)
        peer.forget()
        self._peers -= 1
        if peer.holds_lease:
            self._idle.release()
        if not self._peers and not self._started.is_set():
            self._leave.set()  # no manager waits for this Ray
        os.close(descriptor)
        writer.close()

    async def _reply(self, peer: _Peer, message: JsonObject) -> JsonObject | RayStatus:
        if message["op"] == "lease" and not peer.holds_lease:
            await peer.unless_it_leaves(self._started.wait())
            if not self._started.is_set():
                return {"leaving": True}
            reply = self._lease(message)
            peer.holds_lease = "address" in reply
            return reply
        if message["op"] == "release" and peer.holds_lease:
            peer.holds_lease = False
            return await self._release()
        if message["op"] == "stop":
            self._leave.set()
            return {"leaving": True}
        return self._status()

    def _lease(self, message: JsonObject) -> JsonObject:
        if self._leave.is_set():
            return {"leaving": True}
        if (problem := self._mismatch(message)) is not None:
            if self._idle.leases or self._head.agents():
                hint = "wait for its experiments or run `pitchpipe ray stop`"
                return {"error": f"{problem}; it is in use: {hint}"}
            self._leave.set()
            return {"leaving": True}
        self._idle.lease(float(message["idle_timeout"]))
        return {"address": self._state.address, "token_path": self._state.token_path, "pid": self._state.pid}

    def _mismatch(self, message: JsonObject) -> str | None:
        """Return why this Ray is not the requested one; None if it is."""
        this = f"the private Ray that runs (process {self._state.pid})"
        for name, requested in message["versions"].items():
            if (there := self._state.versions.get(name)) != requested:
                return f"{this} has {name} {there}, not {requested}"
        for name, amount in (message.get("resources") or {}).items():
            if (has := self._state.resources.get(name)) != amount:
                return f"{this} was started with {'no' if has is None else has} {name}, not {amount}"
        return None

    async def _release(self) -> JsonObject:
        self._idle.release()
        in_use = self._idle.leases or self._idle.timeout > 0 or await asyncio.to_thread(self._head.agents)
        return {"leaving": not in_use}  # the idle clock comes to the same result

    def _status(self) -> RayStatus:
        return {
            "pid": self._state.pid,
            "address": self._state.address,
            "since": self._state.created,
            "temp_dir": self._state.temp_dir,
            "versions": self._state.versions,
            "leases": self._idle.leases,
            "idle_timeout": self._idle.timeout,
            "seconds_left": self._idle.seconds_left,
            "agents": self._head.agents() if self._started.is_set() else [],
        }


class IdleClock:
    """Counts leases; `wait` returns after `timeout` seconds without a lease and without an agent.

    `timeout` is the largest that any lease has asked for since Ray was last idle.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.leases = 0
        self.timeout = _FIRST_LEASE
        self.is_idle = True
        self._idle_since: float | None = None
        self._clock = clock
        self._changed = asyncio.Event()

    def lease(self, timeout: float) -> None:
        """Count a lease of a manager that wants this idle timeout (s)."""
        self.timeout = timeout if self.is_idle else max(timeout, self.timeout)
        self.is_idle = False
        self.leases += 1
        self._changed.set()

    def release(self) -> None:
        """Count the end of a lease."""
        self.leases -= 1
        self._changed.set()

    @property
    def seconds_left(self) -> float | None:
        """How long this Ray stays without a new lease; None while it is in use."""
        if self._idle_since is None or self.leases:
            return None
        return max(0.0, self._idle_since + self.timeout - self._clock())

    async def wait(self, agents: Callable[[], list[str]]) -> None:
        """Return when it is time to end; `agents` lists those that live (called in a thread)."""
        look = _LOOK_SOONEST
        while True:
            self._changed.clear()
            if self.leases:
                self._idle_since, look = None, _LOOK_SOONEST
                await self._changed.wait()
            elif await asyncio.to_thread(agents):
                self._idle_since = None
                await self._wait_changed(look)
                look = min(2 * look, _LOOK_LATEST)
            elif not self.leases:
                now = self._clock()
                self._idle_since = now if self._idle_since is None else self._idle_since
                remaining = self._idle_since + self.timeout - now
                if remaining <= 0:
                    return
                self.is_idle = True
                await self._wait_changed(remaining)

    async def _wait_changed(self, timeout: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout)


class _Peer:
    """A connected client: its messages, and whether it holds a lease."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.holds_lease = False
        self._reader = reader
        self._reading = asyncio.ensure_future(reader.readline())

    async def next_message(self) -> JsonObject | None:
        """Return its next message; None when it has left."""
        line = await self._reading
        self._reading = asyncio.ensure_future(self._reader.readline())
        return json.loads(line) if line else None

    def forget(self) -> None:
        """Ignore further messages, and how the connection ends."""
        self._reading.cancel()
        self._reading.add_done_callback(lambda reading: reading.cancelled() or reading.exception())

    async def unless_it_leaves(self, event: Coroutine[Any, Any, Any]) -> None:
        """Wait for `event`, or until the peer leaves."""
        waiting = asyncio.ensure_future(event)
        await asyncio.wait((waiting, self._reading), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()


# ------------------------------------------------------------------ the process


def main(arguments: list[str]) -> int:
    """Serve leases until none is needed, then remove everything; return the exit code."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    listener = socket.socket(fileno=int(options["--listen-fd"]))
    files = SupervisorFiles(Path(options["--directory"]))
    resources = {**limits_of_this_machine(), **json.loads(options["--resources"])}
    ready_reader, ready_writer = os.pipe()
    if os.fork():
        # The manager waits for this process only: it is not the supervisor's parent and need not reap it.
        # This process waits until the state is written, which says whose socket this is.
        os.close(ready_writer)
        os.read(ready_reader, 1)
        os._exit(0)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    temp_dir = make_temp_directory()
    if supervisor := os.fork():
        listener.close()
        os.close(ready_writer)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return _clean_up(supervisor, files, temp_dir)
    os.setpgid(0, 0)  # the watchdog kills this group, which must not include the cleaner
    state = SupervisorState(
        pid=os.getpid(),
        created=psutil.Process().create_time(),
        temp_dir=str(temp_dir),
        versions=versions_here(),
        resources=resources,
    )
    files.write_state(state)
    os.close(ready_writer)
    return _supervise(files, state, RayHead(temp_dir, resources), listener)


def _clean_up(supervisor: int, files: SupervisorFiles, temp_dir: Path) -> int:
    """Wait for the supervisor's end, remove what it has left, and return its exit code."""
    code = os.waitstatus_to_exitcode(os.waitpid(supervisor, 0)[1])
    lock = StartLock(files.lock)
    # Any other holder of the lock removes leftovers before it starts a supervisor.
    if lock.try_take():
        state = files.read_state()
        if state is not None and state.pid == supervisor:
            remove_leftovers(files)
            if code == _ABANDONED:
                files.log.unlink(missing_ok=True)
        lock.release()
    remove_session(str(temp_dir))
    return code


def _supervise(files: SupervisorFiles, state: SupervisorState, head: RayHead, listener: socket.socket) -> int:
    lock = StartLock(files.lock)
    watchdog = WatchdogClient()
    try:
        # If this process is killed, a watchdog kills its Ray: some of the helpers would stay forever.
        os.environ[_SESSION] = state.temp_dir
        watchdog.expect(os.fsencode(f"{_SESSION}={state.temp_dir}"))
        watchdog.watch(os.getpgid(0))
        if not asyncio.run(Supervisor(files, state, lock, head).serve(listener)):
            # A thread is still starting Ray and cannot be interrupted; the cleaner does the rest.
            os._exit(_ABANDONED)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        files.socket.unlink(missing_ok=True)
        head.end()
        files.state.unlink(missing_ok=True)  # the state goes last
        watchdog.release()
        watchdog.close()
    files.log.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
