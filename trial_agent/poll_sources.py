"""What an agent waits for: the growth of a command trial's spool, its end, timers, and other threads.

A spool is watched by inotify on Linux and by kqueue on macOS; elsewhere it is looked at every 0.2 s.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from ..sdk import file_identity
from .agent_events import Event
from .spool import SpoolReader
from .warm import Adopted

LOOK_EVERY = 0.2
_IN_MODIFY = 2  # of <sys/inotify.h>
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


class FileWatch:
    """Watches one file at a time. `descriptor` becomes readable when the file changes.

    Where the system gives no notice (no inotify, or its limits are reached), `descriptor` is None and
    `interval` says how often to look, in seconds.
    """

    descriptor: int | None = None
    interval: float | None = LOOK_EVERY

    def watch(self, path: str) -> None:
        """Watch this file instead of the one before."""

    def clear(self) -> None:
        """Forget the changes seen so far."""

    def close(self) -> None:
        """Release the system's watch."""


class InotifyWatch(FileWatch):
    """Linux: one inotify instance for the life of the agent, as closing one is slow."""

    def __init__(self) -> None:
        import ctypes  # takes milliseconds, and a script does not need it

        self._system: Any = ctypes.CDLL(None, use_errno=True)
        self._errno = ctypes.get_errno
        self._queue = self._done(self._system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._watched: int | None = None

    def watch(self, path: str) -> None:
        """Watch this file; if the system has no free watch, set `interval` instead."""
        self._forget()
        try:
            added = self._system.inotify_add_watch(self._queue, os.fsencode(path), _IN_MODIFY)
            self._watched = self._done(added)
        except OSError:  # fs.inotify.max_user_watches
            self.descriptor, self.interval = None, LOOK_EVERY
        else:
            self.descriptor, self.interval = self._queue, None

    def clear(self) -> None:
        """Discard the notices; the file itself shows what changed."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._queue, 65536)

    def close(self) -> None:
        """Close the inotify instance."""
        os.close(self._queue)

    def _forget(self) -> None:
        if self._watched is not None:
            # It fails if the file was deleted, and its watch with it.
            self._system.inotify_rm_watch(self._queue, self._watched)
            self._watched = None

    def _done(self, result: int) -> int:
        """Return the result of a system call; raise its error."""
        if result < 0:
            raise OSError(self._errno(), os.strerror(self._errno()))
        return result


class KqueueWatch(FileWatch):
    """macOS and the BSDs: a kqueue is itself a descriptor that can be waited for."""

    def __init__(self) -> None:
        self._system: Any = select
        self._queue: Any = self._system.kqueue()
        self._file: int | None = None

    def watch(self, path: str) -> None:
        """Watch this file."""
        self._forget()
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        change = self._system.kevent(
            self._file,
            filter=self._system.KQ_FILTER_VNODE,
            flags=self._system.KQ_EV_ADD | self._system.KQ_EV_CLEAR,
            fflags=self._system.KQ_NOTE_WRITE | self._system.KQ_NOTE_EXTEND,
        )
        self._queue.control([change], 0)
        self.descriptor, self.interval = self._queue.fileno(), None

    def clear(self) -> None:
        """Discard the notices."""
        self._queue.control(None, 16, 0)

    def close(self) -> None:
        """Close the queue and the file."""
        self._forget()
        self._queue.close()

    def _forget(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def best_watch() -> FileWatch:
    """Return the quickest watch that this system offers.

    >>> watch = best_watch()
    >>> watch.close()
    """
    try:
        return InotifyWatch()
    except (ImportError, OSError, AttributeError):
        return KqueueWatch() if hasattr(select, "kqueue") else FileWatch()


class PollTimers:
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
        with contextlib.suppress(BlockingIOError):  # it has been readable for 65,536 calls
            if self.is_whole:
                os.write(self._writer, b"\0")

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
