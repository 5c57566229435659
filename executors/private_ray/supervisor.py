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
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path

import psutil

from ...trial_agent import WatchdogClient
from .head import RayHead, limits_of_this_machine
from .lease_server import Supervisor
from .supervisor_files import (
    StartLock,
    SupervisorFiles,
    SupervisorState,
    make_temp_directory,
    remove_leftovers,
    remove_session,
    versions_here,
)

# Marks the processes of this Ray; agents remove it from the trials' environment, by its prefix.
_SESSION = "PITCHPIPE_RAY_SESSION"
_ABANDONED = 3


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
    state = _write_first_state(files, temp_dir, resources)
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


def _write_first_state(
    files: SupervisorFiles, temp_dir: Path, resources: dict[str, float]
) -> SupervisorState:
    state = SupervisorState(
        pid=os.getpid(),
        created=psutil.Process().create_time(),
        temp_dir=str(temp_dir),
        versions=versions_here(),
        resources=resources,
    )
    files.write_state(state)
    return state


def _supervise(files: SupervisorFiles, state: SupervisorState, head: RayHead, listener: socket.socket) -> int:
    lock = StartLock(files.lock)
    watchdog = WatchdogClient()
    try:
        _tie_ray_to_us(watchdog, state.temp_dir)
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


def _tie_ray_to_us(watchdog: WatchdogClient, temp_dir: str) -> None:
    """Have a watchdog kill this Ray if we are killed: some of its helpers would stay forever."""
    os.environ[_SESSION] = temp_dir
    watchdog.expect(os.fsencode(f"{_SESSION}={temp_dir}"))
    watchdog.watch(os.getpgid(0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
