"""The manager's side of the private Ray: get a lease on it, look at it, stop it.

None of this imports Ray: `pitchpipe ray status` and `stop` answer at once.
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
from typing import Any

from ...store import JsonConnection
from ..base import ExecutorError
from .places import KeeperPlace, StartLock, remove_leftovers
from .versions import versions_here

__all__ = ["RayLease", "acquire", "ray_status", "stop_ray"]

_START_TIMEOUT = 120.0  # Ray needs 3 s; a busy laptop with cold disks ten times that
_LEAVE_TIMEOUT = 20.0
_STARTS = 3  # a keeper may be killed while its Ray starts; what ends it each time is not chance


class RayLease:
    """The right to use the private Ray at `address`: until `close`, or until this object or process ends."""

    def __init__(self, address: str, token_path: str, keeper_pid: int, line: JsonConnection) -> None:
        self.address = address
        self.token_path = token_path
        self.keeper_pid = keeper_pid
        self._line = line

    async def until_lost(self) -> None:
        """Return when the keeper is gone. Not to be awaited while `close` is."""
        try:
            await self._line.until_end(None)
        except OSError:
            return

    async def is_lost(self, within: float) -> bool:
        """Whether the keeper is gone, or is `within` so many seconds."""
        try:
            await asyncio.wait_for(self.until_lost(), within)
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Give the lease back; if the keeper leaves because of that, wait until it is gone (bounded)."""
        try:
            answer = await self._line.ask({"op": "release"}, _LEAVE_TIMEOUT)
            if answer.get("leaving"):
                await self._line.until_end(_LEAVE_TIMEOUT)
        except (OSError, EOFError, TimeoutError):
            pass  # the keeper is gone already, or stuck: the next start removes what it left
        finally:
            self._line.close()


async def acquire(idle_timeout: float, resources: Mapping[str, float] | None = None) -> RayLease:
    """Return a lease on the user's private Ray, which is started if need be.

    The keeper stays for `idle_timeout` seconds after the last lease and the last agent (0: not at all; the
    largest that was asked for counts). `resources` are amounts by Ray's names (`{"CPU": 4, "GPU": 1,
    "widget": 2}`) for a Ray that is started; one that runs and is in use must have been started with the
    same. Raises `ExecutorError` when it cannot be started or is another than is needed.
    """
    place = KeeperPlace.current()
    lease = {"op": "lease", "idle_timeout": idle_timeout, "resources": resources, "versions": versions_here()}
    deadline = time.monotonic() + _START_TIMEOUT
    starts = 0
    while time.monotonic() < deadline:
        line, started = await _connect(place, resources or {}, deadline)
        starts += started
        try:
            answer = await line.ask(lease, deadline - time.monotonic())
        except (OSError, EOFError):
            answer = {}
        if "address" in answer:
            return RayLease(answer["address"], answer["token_path"], answer["pid"], line)
        if "error" in answer and started:
            with contextlib.suppress(OSError, TimeoutError):
                await line.until_end(_LEAVE_TIMEOUT)  # it removes what it has made
        line.close()
        if "error" in answer:
            raise ExecutorError(answer["error"])
        # The keeper was about to leave when we came, or was killed.
        if starts == _STARTS:
            raise ExecutorError(f"the private Ray did not start: {_last_words(place)}")
    raise ExecutorError(f"the private Ray was not there after {_START_TIMEOUT:.0f} s: {_last_words(place)}")


def ray_status() -> dict[str, Any] | None:
    """Return what the keeper says of itself (pid, address, leases, agents, ...); None if there is none.

    Of a keeper that is just starting only the pid is told, and `"starting": true`.
    """
    place = KeeperPlace.current()
    line = _connected(place)
    if line is None:
        return None
    with line:
        state = place.read_state()
        if state is not None and not state.address:
            return {"pid": state.pid, "starting": True}
        return _asked(line, "status")


def stop_ray() -> bool:
    """Stop the private Ray and all that runs in it; False if there was none.

    Leftovers of one whose keeper was killed are removed. Raises `ExecutorError` if it does not end.
    """
    place = KeeperPlace.current()
    line = _connected(place)
    if line is not None:
        with line:
            _asked(line, "stop")
    lock = StartLock(place.lock)
    deadline = time.monotonic() + _LEAVE_TIMEOUT
    while not lock.try_take():
        if time.monotonic() > deadline:
            raise ExecutorError(f"the private Ray does not end; its keeper's log is {place.log}")
        time.sleep(0.05)
    try:
        remove_leftovers(place)
    finally:
        lock.release()
    return line is not None


def _connected(place: KeeperPlace) -> JsonConnection | None:
    """Return a connection to the keeper of this place; None if there is none."""
    try:
        return JsonConnection.to(place.socket)
    except OSError:
        return None


def _asked(line: JsonConnection, operation: str) -> dict[str, Any] | None:
    """Return the keeper's reply; None when it ends instead."""
    try:
        return line.ask_now({"op": operation}, _LEAVE_TIMEOUT)
    except (OSError, EOFError):
        return None


async def _connect(
    place: KeeperPlace, resources: Mapping[str, float], deadline: float
) -> tuple[JsonConnection, bool]:
    """Return a line to the keeper, and whether it was started for it."""
    if (line := _connected(place)) is not None:
        return line, False
    lock = StartLock(place.lock)
    try:
        await lock.take(deadline - time.monotonic())
    except TimeoutError:
        raise ExecutorError(
            f"another keeper of the private Ray does not end; its log is {place.log}"
        ) from None
    try:
        if (line := _connected(place)) is not None:
            return line, False
        return await _start_keeper(place, resources), True
    except subprocess.CalledProcessError:
        raise ExecutorError(f"the private Ray did not start: {_last_words(place)}") from None
    finally:
        lock.release()


async def _start_keeper(place: KeeperPlace, resources: Mapping[str, float]) -> JsonConnection:
    """Start a keeper; what is begun must be finished, even if nobody waits for it any more."""
    starting = asyncio.ensure_future(asyncio.to_thread(_launch_keeper, place, resources))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            (await starting).close()  # it has nobody to work for, and leaves
        raise


def _launch_keeper(place: KeeperPlace, resources: Mapping[str, float]) -> JsonConnection:
    """Start a keeper on a socket that is listening already, and that we are connected to.

    So whoever connects need not wait for it, and if we are killed the keeper sees that nobody needs it.
    """
    remove_leftovers(place)
    with socket.socket(socket.AF_UNIX) as listener, place.log.open("wb") as log:
        listener.bind(str(place.socket))
        listener.listen(64)
        line = JsonConnection.to(place.socket)
        subprocess.run(
            [
                *(sys.executable, "-P", "-m", f"{__package__}.keeper"),
                *("--directory", str(place.directory)),
                *("--listen-fd", str(listener.fileno())),
                *("--resources", json.dumps(dict(resources))),
            ],
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=place.directory,
            start_new_session=True,  # the terminal's Ctrl-C is not for it
            check=True,
        )
    return line


def _last_words(place: KeeperPlace) -> str:
    """Return the last lines of the keeper's log."""
    try:
        text = place.log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "it left no log"
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{lines[-1] if lines else 'it said nothing'} (more in {place.log})"
