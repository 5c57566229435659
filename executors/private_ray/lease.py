"""The manager's side of the private Ray: lease it, query its status, stop it.

None of this imports Ray, so that `pitchpipe ray status` and `stop` are fast.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

from ...protocol import Json
from ...store import JsonConnection
from ..errors import ExecutorError
from .supervisor_files import (
    RayStatus,
    StartingRay,
    StartLock,
    SupervisorFiles,
    remove_leftovers,
    versions_here,
)

_START_TIMEOUT = 120.0  # Ray needs 3 s; a busy laptop with cold disks ten times that
_LEAVE_TIMEOUT = 20.0
_STARTS = 3  # a supervisor may be killed while its Ray starts; three in a row are no accident


class RayLease:
    """The right to use the private Ray at `address`, until `close` or the end of this object or process."""

    def __init__(self, address: str, token_path: str, pid: int, connection: JsonConnection) -> None:
        self.address = address
        self.token_path = token_path
        self.supervisor_pid = pid
        self._connection = connection

    async def until_lost(self) -> None:
        """Return when the supervisor is gone; do not await this and `close` at the same time."""
        with contextlib.suppress(OSError):
            await self._connection.until_end(None)

    async def is_lost(self, within: float) -> bool:
        """Return whether the supervisor is gone, or ends within so many seconds."""
        try:
            await asyncio.wait_for(self.until_lost(), within)
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Give the lease back; if the supervisor then ends, wait for that for a bounded time."""
        try:
            reply = await self._connection.ask({"op": "release"}, _LEAVE_TIMEOUT)
            if reply.get("leaving"):
                await self._connection.until_end(_LEAVE_TIMEOUT)
        except (OSError, EOFError, TimeoutError):
            pass  # the supervisor is gone or hangs: the next start removes what it left
        finally:
            self._connection.close()


async def acquire(idle_timeout: float, resources: Mapping[str, float] | None = None) -> RayLease:
    """Return a lease on the user's private Ray; start it if necessary.

    The supervisor stays for `idle_timeout` seconds after the last lease and the last agent; the largest timeout
    requested counts, 0 means not at all. `resources` are amounts by Ray's names (`{"CPU": 4, "GPU": 1,
    "widget": 2}`) for a new Ray; one in use must have been started with the same. Raise `ExecutorError` if Ray
    cannot be started or the one in use does not match.
    """
    files = SupervisorFiles.current()
    lease = {"op": "lease", "idle_timeout": idle_timeout, "resources": resources, "versions": versions_here()}
    deadline = time.monotonic() + _START_TIMEOUT
    starts = 0
    while time.monotonic() < deadline:
        connection, started = await _connect(files, resources or {}, deadline)
        starts += started
        try:
            reply = await connection.ask(lease, deadline - time.monotonic())
        except (OSError, EOFError):
            reply = {}
        if "address" in reply:
            return RayLease(reply["address"], reply["token_path"], reply["pid"], connection)
        if "error" in reply and started:
            with contextlib.suppress(OSError, TimeoutError):
                await connection.until_end(_LEAVE_TIMEOUT)  # it removes what it has made
        connection.close()
        if "error" in reply:
            raise ExecutorError(reply["error"])
        # The supervisor was just ending, or was killed.
        if starts == _STARTS:
            raise ExecutorError(f"the private Ray did not start: {_last_words(files)}")
    raise ExecutorError(f"the private Ray did not start within {_START_TIMEOUT:.0f} s: {_last_words(files)}")


def ray_status() -> RayStatus | StartingRay | None:
    """Return what the supervisor says of its Ray; None if there is no supervisor."""
    files = SupervisorFiles.current()
    connection = _connected(files)
    if connection is None:
        return None
    with connection:
        state = files.read_state()
        if state is not None and not state.address:
            return {"pid": state.pid, "starting": True}
        return _ask(connection, "status")


def stop_ray() -> bool:
    """Stop the private Ray and all that runs in it; return False if there was none.

    This also removes the leftovers of a killed supervisor. Raise `ExecutorError` if the supervisor does not end.
    """
    files = SupervisorFiles.current()
    connection = _connected(files)
    if connection is not None:
        with connection:
            _ask(connection, "stop")
    lock = StartLock(files.lock)
    deadline = time.monotonic() + _LEAVE_TIMEOUT
    while not lock.try_take():
        if time.monotonic() > deadline:
            raise ExecutorError(f"the private Ray does not end; see the supervisor's log, {files.log}")
        time.sleep(0.05)
    try:
        remove_leftovers(files)
    finally:
        lock.release()
    return connection is not None


def _connected(files: SupervisorFiles) -> JsonConnection | None:
    """Return a connection to the supervisor; None if there is none."""
    try:
        return JsonConnection.to(files.socket)
    except OSError:
        return None


def _ask(connection: JsonConnection, operation: str) -> Json:
    """Return the supervisor's reply; None if it ends instead."""
    try:
        return connection.ask_now({"op": operation}, _LEAVE_TIMEOUT)
    except (OSError, EOFError):
        return None


async def _connect(
    files: SupervisorFiles, resources: Mapping[str, float], deadline: float
) -> tuple[JsonConnection, bool]:
    """Return a connection to the supervisor, and whether the supervisor was started for it."""
    if (connection := _connected(files)) is not None:
        return connection, False
    lock = StartLock(files.lock)
    try:
        await lock.take(deadline - time.monotonic())
    except TimeoutError:
        why = f"another supervisor of the private Ray does not end; see its log, {files.log}"
        raise ExecutorError(why) from None
    try:
        if (connection := _connected(files)) is not None:
            return connection, False
        return await _start_supervisor(files, resources), True
    except subprocess.CalledProcessError:
        raise ExecutorError(f"the private Ray did not start: {_last_words(files)}") from None
    finally:
        lock.release()


async def _start_supervisor(files: SupervisorFiles, resources: Mapping[str, float]) -> JsonConnection:
    """Start a supervisor; when cancelled, finish the start and let the supervisor end."""
    starting = asyncio.ensure_future(asyncio.to_thread(_launch_supervisor, files, resources))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            (await starting).close()  # without a lease it ends
        raise


def _launch_supervisor(files: SupervisorFiles, resources: Mapping[str, float]) -> JsonConnection:
    """Start a supervisor on a listening socket to which this process is connected already.

    So no client has to wait for the socket, and if this process is killed the supervisor sees that and ends.
    """
    remove_leftovers(files)
    with socket.socket(socket.AF_UNIX) as listener, files.log.open("wb") as log:
        listener.bind(str(files.socket))
        listener.listen(64)
        connection = JsonConnection.to(files.socket)
        subprocess.run(
            [
                *(sys.executable, "-P", "-m", f"{__package__}.supervisor"),
                *("--directory", str(files.directory)),
                *("--listen-fd", str(listener.fileno())),
                *("--resources", json.dumps(dict(resources))),
            ],
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=files.directory,
            start_new_session=True,  # out of reach of the terminal's Ctrl-C
            check=True,
        )
    return connection


def _last_words(files: SupervisorFiles) -> str:
    """Return the last lines of the supervisor's log."""
    try:
        text = files.log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "it left no log"
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'the log is empty'} (more in {files.log})"
