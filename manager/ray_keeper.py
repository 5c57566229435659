"""The keeper: a process in a session of its own that holds one private Ray per user (per runtime directory).

    python -m pitchpipe.manager.ray_keeper --directory DIR --listen-fd N --resources JSON

Managers hold a lease on it (a connection to its socket, see `ray_lease`) while they use its Ray. It outlives
them: agents are detached, and a manager that was killed finds them again. It leaves, and its Ray with it,
when there has been neither a lease nor an agent for the idle timeout: the largest one that a lease asked for
since it was last without leases and agents. SIGTERM and `stop_ray` end it at once, with everything that runs
in its Ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from ..trial_agent.guard import Guard
from .ray_idle import IdleClock
from .ray_join import named_actors
from .ray_places import KeeperPlace, KeeperState, StartLock, make_temp_directory, session_processes
from .ray_versions import versions_here

__all__ = ["Keeper", "main"]

_log = logging.getLogger(__name__)

# Marks the processes of this Ray; agents take it out of what trials inherit, by its prefix.
_SESSION = "PITCHPIPE_RAY_SESSION"
# Ray names these amounts by arguments of their own; all others are custom resources.
_INIT_ARGUMENTS = {
    "CPU": "num_cpus",
    "GPU": "num_gpus",
    "memory": "_memory",
    "object_store_memory": "object_store_memory",
}


def main(arguments: list[str]) -> int:
    """Start Ray, serve leases until there is no need, remove everything; return the exit code."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    listener = socket.socket(fileno=int(options["--listen-fd"]))
    if os.fork():
        # Whoever started us waits for this process only, and is not the parent of the keeper: no zombies.
        os._exit(0)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave_now)
    place = KeeperPlace(Path(options["--directory"]))
    temp_dir = make_temp_directory()
    lock = StartLock(place.lock)
    guard = Guard()
    try:
        _tie_ray_to_us(guard, temp_dir)
        state = _start_ray(place, temp_dir, json.loads(options["--resources"]))
        asyncio.run(Keeper(place, state, lock, _agents_of_ray, _pids_of_ray(temp_dir)).serve(listener))
    finally:
        _remove(place, temp_dir)
        guard.release()
        guard.close()
    place.log.unlink(missing_ok=True)
    return 0


def _tie_ray_to_us(guard: Guard, temp_dir: Path) -> None:
    """Let a watchdog kill this Ray if we are killed: some of its helpers would stay for ever."""
    os.environ[_SESSION] = str(temp_dir)
    guard.expect(f"{_SESSION}={temp_dir}".encode())
    guard.watch(os.getpgid(0))


def _leave_now(number: int, frame: object) -> None:
    del number, frame
    raise SystemExit(0)


def _start_ray(place: KeeperPlace, temp_dir: Path, resources: dict[str, float]) -> KeeperState:
    """Start the private Ray; the state is written before, so that what a crash leaves can be found."""
    created = psutil.Process().create_time()
    here = versions_here()
    state = KeeperState(os.getpid(), created, str(temp_dir), versions=here, resources=resources)
    place.write_state(state)
    token = temp_dir / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32), encoding="ascii")
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(token), RAY_USAGE_STATS_ENABLED="0")
    os.environ.pop("RAY_ADDRESS", None)
    os.environ.pop("RAY_AUTH_TOKEN", None)
    import ray

    context = ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        namespace="pitchpipe-keeper",
        _temp_dir=str(temp_dir),
        **_init_arguments(resources),
    )
    signal.signal(signal.SIGTERM, _leave_now)  # Ray has put in its own
    address = context.address_info["gcs_address"]  # type: ignore[index]
    state = replace(state, address=address, token_path=str(token))
    place.write_state(state)
    return state


def _init_arguments(resources: dict[str, float]) -> dict[str, Any]:
    """Arguments of `ray.init` for amounts by name.

    >>> _init_arguments({"CPU": 2, "widget": 3})
    {'num_cpus': 2, 'resources': {'widget': 3}}
    """
    named = {_INIT_ARGUMENTS[name]: amount for name, amount in resources.items() if name in _INIT_ARGUMENTS}
    custom = {name: amount for name, amount in resources.items() if name not in _INIT_ARGUMENTS}
    return {**named, **({"resources": custom} if custom else {})}


def _agents_of_ray() -> list[str]:
    """The live named actors of this Ray: all of them are agents of some experiment."""
    return [f"{each['namespace']}/{each['name']}" for each in named_actors()]


def _pids_of_ray(temp_dir: Path) -> list[psutil.Process]:
    """The two processes without which this Ray is dead."""
    vital = ("gcs_server", "raylet")
    return [each for each in session_processes(str(temp_dir)) if each.name() in vital]


def _remove(place: KeeperPlace, temp_dir: Path) -> None:
    """End Ray and remove its folder; the state goes last."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    place.socket.unlink(missing_ok=True)
    processes = session_processes(str(temp_dir))
    if (ray := sys.modules.get("ray")) is not None:
        ray.shutdown()
    _, alive = psutil.wait_procs(processes, timeout=5.0)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=5.0)
    shutil.rmtree(temp_dir, ignore_errors=True)
    place.state.unlink(missing_ok=True)


class Keeper:
    """Serves leases; `serve` returns when it is time to leave, and holds the start lock then."""

    def __init__(
        self,
        place: KeeperPlace,
        state: KeeperState,
        lock: StartLock,
        agents: Callable[[], list[str]],
        vital: list[psutil.Process],
    ) -> None:
        self._place = place
        self._state = state
        self._lock = lock
        self._agents = agents
        self._vital = vital
        self._idle = IdleClock()
        self._leave = asyncio.Event()

    async def serve(self, listener: socket.socket) -> None:
        """Answer managers until nobody needs this Ray any more, it has died, or SIGTERM came."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._leave.set)
        self._watch_ray(loop)
        server = await asyncio.start_unix_server(self._serve_peer, sock=listener)
        watch = asyncio.create_task(self._idle.wait(self._agents))
        leave = asyncio.create_task(self._leave.wait())
        await asyncio.wait((watch, leave), return_when=asyncio.FIRST_COMPLETED)
        watch.cancel()
        leave.cancel()
        self._leave.set()
        # Whoever cannot connect from here on waits for the lock, which the kernel drops when we are gone.
        with contextlib.suppress(OSError, TimeoutError):
            await self._lock.take(timeout=10.0)
        server.close()

    def _watch_ray(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leave when a vital process of Ray dies."""

        def watch(process: psutil.Process) -> None:
            process.wait()
            loop.call_soon_threadsafe(self._leave.set)

        for process in self._vital:
            threading.Thread(target=watch, args=(process,), daemon=True).start()

    async def _serve_peer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; a lease ends with it."""
        # A second descriptor: the peer sees the end of its connection when we are gone, not when the loop
        # closes.
        descriptor = os.dup(writer.get_extra_info("socket").fileno())
        holds = False
        try:
            while line := await reader.readline():
                message = json.loads(line)
                if message["op"] == "lease" and not holds:
                    answer = self._lease(message)
                    holds = "address" in answer
                elif message["op"] == "release" and holds:
                    holds = False
                    answer = await self._release()
                else:
                    answer = self._answer(message["op"])
                writer.write(json.dumps(answer).encode() + b"\n")
        except (OSError, ValueError, KeyError) as error:
            _log.warning("a connection failed: %r", error)
        except asyncio.CancelledError:
            return  # the loop ends: we leave, and the second descriptor stays open until then
        if holds:
            self._idle.release()
        os.close(descriptor)
        writer.close()

    def _lease(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._leave.is_set():
            return {"leaving": True}
        problem = self._unfit(message)
        if problem is not None and self._idle.leases == 0 and not self._agents():
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
        if self._idle.leases or self._idle.timeout > 0 or await asyncio.to_thread(self._agents):
            return {"leaving": False}
        return {"leaving": True}  # the idle clock comes to the same result

    def _answer(self, op: str) -> dict[str, Any]:
        if op == "stop":
            self._leave.set()
            return {"leaving": True}
        return {
            "pid": self._state.pid,
            "address": self._state.address,
            "temp_dir": self._state.temp_dir,
            "versions": self._state.versions,
            "leases": self._idle.leases,
            "idle_timeout": self._idle.timeout,
            "agents": self._agents(),
        }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
