"""The keeper: a process in a session of its own that holds one private Ray per user (per runtime directory).

    python -m pitchpipe.executors.private_ray.keeper --directory DIR --listen-fd N --resources JSON

Managers hold a lease on it (a connection to its socket, see `lease`) while they use its Ray. It outlives
them: agents are detached, and a manager that was killed finds them again. It leaves, and its Ray with it,
when there has been neither a lease nor an agent for the idle timeout: the largest one that a lease asked for
since it was last without leases and agents. SIGTERM and `stop_ray` end it at once, with everything that runs
in its Ray; and while Ray is still starting, so does the departure of the last manager that waits for it.

Beside it an undertaker waits for its end, and removes what a keeper leaves that had no time to do so itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path

import psutil

from ...trial_agent import Guard
from .head import RayHead
from .places import KeeperPlace, KeeperState, StartLock, make_temp_directory, remove_leftovers, remove_session
from .serving import Keeper
from .versions import versions_here

__all__ = ["main"]

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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
