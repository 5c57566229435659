"""The keeper: a process in a session of its own that holds one private Ray per user (per runtime directory).

    python -m pitchpipe.manager.ray_keeper --directory DIR --listen-fd N --resources JSON

Managers hold a lease on it (a connection to its socket, see `ray_lease`) while they use its Ray. It outlives
them: agents are detached, and a manager that was killed finds them again. It leaves, and its Ray with it,
when there has been neither a lease nor an agent for the idle timeout: the largest one that a lease asked for
since it was last without leases and agents. SIGTERM and `stop_ray` end it at once, with everything that runs
in its Ray; and while Ray is still starting, so does the departure of the last manager that waits for it.

Beside it an undertaker waits for its end, and removes what a keeper leaves that had no time to do so itself.
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
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import psutil

from ..trial_agent.guard import Guard
from .ray_head import RayHead
from .ray_idle import IdleClock
from .ray_join import take_back_signals
from .ray_places import (
    KeeperPlace,
    KeeperState,
    StartLock,
    make_temp_directory,
    remove_leftovers,
    remove_session,
)
from .ray_versions import versions_here

__all__ = ["Head", "Keeper", "main"]

_log = logging.getLogger(__name__)

# Marks the processes of this Ray; agents take it out of what trials inherit, by its prefix.
_SESSION = "PITCHPIPE_RAY_SESSION"
_ABANDONED = 3


def main(arguments: list[str]) -> int:
    """Serve leases until there is no need, remove everything; return the exit code."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    listener = socket.socket(fileno=int(options["--listen-fd"]))
    place, resources = KeeperPlace(Path(options["--directory"])), json.loads(options["--resources"])
    told, tell = os.pipe()
    if os.fork():
        # Whoever started us waits for this process only, and is not the parent of the keeper: no zombies.
        # The state is written by then: it tells whose the socket is.
        os.close(tell)
        os.read(told, 1)
        os._exit(0)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    temp_dir = make_temp_directory()
    if keeper := os.fork():
        listener.close()
        os.close(tell)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return _bury(keeper, place, temp_dir)
    os.setpgid(0, 0)  # the watchdog kills this group, and the undertaker is not to be in it
    state = _write_first_state(place, temp_dir, resources)
    os.close(tell)
    return _keep(place, state, RayHead(temp_dir, resources), listener)


def _bury(keeper: int, place: KeeperPlace, temp_dir: Path) -> int:
    """Wait for the keeper's end, remove what it has left, and return its exit code."""
    code = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
    lock = StartLock(place.lock)
    # Whoever else holds the lock looks for leftovers before it starts another keeper.
    if lock.try_take():
        state = place.read_state()
        if state is not None and state.pid == keeper:
            remove_leftovers(place)
            if code == _ABANDONED:
                place.log.unlink(missing_ok=True)
        lock.release()
    remove_session(str(temp_dir))
    return code


def _write_first_state(place: KeeperPlace, temp_dir: Path, resources: dict[str, float]) -> KeeperState:
    created = psutil.Process().create_time()
    state = KeeperState(os.getpid(), created, str(temp_dir), versions=versions_here(), resources=resources)
    place.write_state(state)
    return state


def _keep(place: KeeperPlace, state: KeeperState, head: RayHead, listener: socket.socket) -> int:
    lock = StartLock(place.lock)
    guard = Guard()
    try:
        _tie_ray_to_us(guard, state.temp_dir)
        if not asyncio.run(Keeper(place, state, lock, head).serve(listener)):
            # A thread is still busy with starting Ray, and would go on; the undertaker does the rest.
            os._exit(_ABANDONED)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        place.socket.unlink(missing_ok=True)
        head.end()
        place.state.unlink(missing_ok=True)  # the state goes last
        guard.release()
        guard.close()
    place.log.unlink(missing_ok=True)
    return 0


def _tie_ray_to_us(guard: Guard, temp_dir: str) -> None:
    """Let a watchdog kill this Ray if we are killed: some of its helpers would stay for ever."""
    os.environ[_SESSION] = temp_dir
    guard.expect(f"{_SESSION}={temp_dir}".encode())
    guard.watch(os.getpgid(0))


class Head(Protocol):
    """What a keeper needs of its Ray."""

    @property
    def token_path(self) -> Path:
        """The file with its token."""
        ...

    def start(self) -> str:
        """Start it and answer its address."""
        ...

    def agents(self) -> list[str]:
        """The agents that live in it."""
        ...

    def vital(self) -> list[psutil.Process]:
        """The processes that it cannot do without."""
        ...


class Keeper:
    """Starts Ray and serves leases; `serve` returns when it is time to leave, and holds the start lock then."""

    def __init__(self, place: KeeperPlace, state: KeeperState, lock: StartLock, head: Head) -> None:
        self._place = place
        self._state = state
        self._lock = lock
        self._head = head
        self._idle = IdleClock()
        self._peers = 0
        self._started = asyncio.Event()
        self._leave = asyncio.Event()

    async def serve(self, listener: socket.socket) -> bool:
        """Answer managers until nobody needs this Ray any more, it has died, or SIGTERM came.

        False if that was before Ray had started.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._leave.set)
        starting = loop.create_task(self._start())
        server = await asyncio.start_unix_server(self._serve_peer, sock=listener)
        leaving = loop.create_task(self._leave.wait())
        await asyncio.wait((starting, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return False
        starting.result()
        self._watch_ray(loop)
        idle = loop.create_task(self._idle.wait(self._head.agents))
        await asyncio.wait((idle, leaving), return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        self._leave.set()
        # Whoever cannot connect from here on waits for the lock, which the kernel drops when we are gone.
        with contextlib.suppress(OSError, TimeoutError):
            await self._lock.take(timeout=10.0)
        server.close()
        return True

    async def _start(self) -> None:
        address = await _in_lasting_thread(self._head.start)
        take_back_signals()
        self._state = replace(self._state, address=address, token_path=str(self._head.token_path))
        self._place.write_state(self._state)
        self._started.set()

    def _watch_ray(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leave when a vital process of Ray dies."""

        def watch(process: psutil.Process) -> None:
            process.wait()
            loop.call_soon_threadsafe(self._leave.set)

        for process in self._head.vital():
            threading.Thread(target=watch, args=(process,), daemon=True).start()

    async def _serve_peer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; a lease ends with it."""
        # A second descriptor: the peer sees the end of its connection when we are gone, not when the loop
        # closes.
        descriptor = os.dup(writer.get_extra_info("socket").fileno())
        self._peers += 1
        peer = _Peer(reader)
        try:
            while message := await peer.next_message():
                answer = await self._answer(peer, message)
                writer.write(json.dumps(answer).encode() + b"\n")
        except (OSError, ValueError, KeyError) as error:
            _log.warning("a connection failed: %r", error)
        except asyncio.CancelledError:
            return  # the loop ends: we leave, and the second descriptor stays open until then
        self._peers -= 1
        if peer.holds:
            self._idle.release()
        if not self._peers and not self._started.is_set():
            self._leave.set()  # nobody waits for this Ray any more
        os.close(descriptor)
        writer.close()

    async def _answer(self, peer: _Peer, message: dict[str, Any]) -> dict[str, Any]:
        if message["op"] == "lease" and not peer.holds:
            await peer.unless_it_goes(self._started.wait())
            if not self._started.is_set():
                return {"leaving": True}
            answer = self._lease(message)
            peer.holds = "address" in answer
            return answer
        if message["op"] == "release" and peer.holds:
            peer.holds = False
            return await self._release()
        if message["op"] == "stop":
            self._leave.set()
            return {"leaving": True}
        return self._status()

    def _lease(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._leave.is_set():
            return {"leaving": True}
        problem = self._unfit(message)
        if problem is not None and self._idle.leases == 0 and not self._head.agents():
            self._leave.set()
            return {"leaving": True}
        if problem is not None:
            return {"error": f"{problem}; it is in use: wait for its experiments or run `pitchpipe ray stop`"}
        self._idle.lease(float(message["idle_timeout"]))
        return {"address": self._state.address, "token_path": self._state.token_path, "pid": self._state.pid}

    def _unfit(self, message: dict[str, Any]) -> str | None:
        """Why this Ray is not the one that is asked for."""
        this = f"the private Ray that runs (process {self._state.pid})"
        for name, asked in message["versions"].items():
            if (there := self._state.versions.get(name)) != asked:
                return f"{this} has {name} {there}, not {asked}"
        for name, amount in (message.get("resources") or {}).items():
            if (has := self._state.resources.get(name)) != amount:
                return f"{this} was started with {'no' if has is None else has} {name}, not {amount}"
        return None

    async def _release(self) -> dict[str, Any]:
        self._idle.release()
        if self._idle.leases or self._idle.timeout > 0 or await asyncio.to_thread(self._head.agents):
            return {"leaving": False}
        return {"leaving": True}  # the idle clock comes to the same result

    def _status(self) -> dict[str, Any]:
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


async def _in_lasting_thread(work: Callable[[], str]) -> str:
    """The result of `work`, done in a thread that stays: the kernel kills Ray's processes with their parent thread."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def run() -> None:
        try:
            loop.call_soon_threadsafe(done.set_result, work())
        except BaseException as error:  # noqa: BLE001  (whatever it is belongs to whoever waits)
            loop.call_soon_threadsafe(done.set_exception, error)
        threading.Event().wait()

    threading.Thread(target=run, name="ray", daemon=True).start()
    return await done


class _Peer:
    """Somebody who is connected: what it says, and whether it holds a lease."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.holds = False
        self._reader = reader
        self._reading = asyncio.ensure_future(reader.readline())

    async def next_message(self) -> dict[str, Any] | None:
        """What it says next; None when it has gone."""
        line = await self._reading
        self._reading = asyncio.ensure_future(self._reader.readline())
        return json.loads(line) if line else None

    async def unless_it_goes(self, event: Coroutine[Any, Any, Any]) -> None:
        """Wait for `event`, but no longer than the peer does."""
        waiting = asyncio.ensure_future(event)
        await asyncio.wait((waiting, self._reading), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
