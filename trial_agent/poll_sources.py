"""What an agent waits for: the growth of a command trial's spool, its end, timers, and other threads."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable

from ..sdk import file_identity
from .agent_events import Event
from .spool import SpoolReader
from .warm import Adopted

_CHUNK = 65536
_CHUNKS = 16  # read before the trial's end, kills and timers are checked again


class Follower:
    """Reads a spool as it grows and sends its events."""

    def __init__(self, descriptor: int, reader: SpoolReader, send: Callable[[list[Event]], None]) -> None:
        self.behind = False  # the file holds more than was read
        self._descriptor = descriptor
        self._reader = reader
        self._send = send
        self._position = 0

    def read(self) -> None:
        """Send what is new, up to a bound, so that a flood of reports cannot delay a kill."""
        for _ in range(_CHUNKS):
            data = os.read(self._descriptor, _CHUNK)
            if data and (events := self._reader.feed(data)):
                self._send(events)
            self._position += len(data)
            if len(data) < _CHUNK:
                self.behind = self._was_truncated()
                return
        self.behind = True

    def read_all(self, wait_for_room: Callable[[], None] = lambda: None) -> None:
        """Send everything, up to and including a last line without a newline."""
        self.behind = True
        while self.behind:
            wait_for_room()
            self.read()
        if events := self._reader.finish():
            self._send(events)

    def _was_truncated(self) -> bool:
        """Start again with a file that became shorter because a script wrote with `>` instead of `>>`.

        A writer takes back a line that did not fit on the disk; that loses nothing.
        """
        size = os.fstat(self._descriptor).st_size
        if size >= self._position:
            return False
        if self._reader.take_back(self._position - size):
            self._position = os.lseek(self._descriptor, size, os.SEEK_SET)
            return False
        self._send(self._reader.restart("the reports were overwritten: append with >>"))
        self._position = os.lseek(self._descriptor, 0, os.SEEK_SET)
        return True


class Timers:
    """When the next thing is due, as a timeout for `poll`."""

    def __init__(self, look_every: float | None, memory_every: float | None) -> None:
        self._look_every = look_every
        self._memory_every = memory_every
        self._next_memory = time.monotonic() + (memory_every or 0.0)

    def timeout(self, at_once: float | None, deadline: float | None) -> int | None:
        """Return the milliseconds until the earliest timer, rounded up; None if there is no timer."""
        now = time.monotonic()
        waits = [at_once, self._look_every]
        waits.append(None if deadline is None else deadline - now)
        waits.append(None if self._memory_every is None else self._next_memory - now)
        due = [wait for wait in waits if wait is not None]
        return max(0, int(min(due) * 1000) + (min(due) > 0)) if due else None

    def memory_due(self) -> bool:
        """Return whether the memory should be checked now, and plan the next check."""
        if time.monotonic() < self._next_memory:
            return False
        self._next_memory = time.monotonic() + (self._memory_every or 0.0)
        return True


class ExitWatch:
    """A descriptor that becomes readable when a process ends: its pidfd, or a pipe that a thread closes."""

    def __init__(self, process: subprocess.Popen[bytes] | Adopted) -> None:
        self.descriptor = _pidfd(process.pid)
        if self.descriptor is None:
            self.descriptor, writer = os.pipe()
            threading.Thread(target=_close_at_end, args=(process, writer), daemon=True).start()

    def __enter__(self) -> ExitWatch:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


class Wake:
    """Wakes a thread that waits in `poll`, as long as no trial's function has closed its descriptors.

    >>> wake = Wake()
    >>> wake.set(); wake.set()
    >>> wake.clear(), wake.clear()
    (b'\\x00\\x00', b'')
    >>> wake.close()
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._identities = self._look()

    @property
    def is_whole(self) -> bool:
        """Whether its descriptors are still its own: a function of a trial may close those of its process."""
        return self._look() == self._identities

    def _look(self) -> list[tuple[int, int] | None]:
        return [file_identity(descriptor) for descriptor in (self._reader, self._writer)]

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._reader

    @property
    def writer(self) -> int:
        """The writing end, for `signal.set_wakeup_fd`."""
        return self._writer

    def set(self) -> None:
        """Make the descriptor readable."""
        try:
            if self.is_whole:
                os.write(self._writer, b"\0")
        except BlockingIOError:  # it has been readable for 65,536 calls
            pass

    def clear(self) -> bytes:
        """Make the descriptor unreadable until the next `set`; return the bytes that were written to it."""
        try:
            return os.read(self._reader, 65536) if self.is_whole else b""
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close both ends."""
        os.close(self._reader)
        os.close(self._writer)


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _close_at_end(process: subprocess.Popen[bytes] | Adopted, writer: int) -> None:
    process.wait()
    os.close(writer)
