"""Wakes the agent when a spool grows: inotify on Linux, kqueue on macOS, a look every 0.2 s elsewhere."""

from __future__ import annotations

import os
import select
from typing import Any

LOOK_EVERY = 0.2
_IN_MODIFY = 2  # of <sys/inotify.h>


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
            self._watched = self._done(
                self._system.inotify_add_watch(self._queue, os.fsencode(path), _IN_MODIFY)
            )
        except OSError:  # fs.inotify.max_user_watches
            self.descriptor, self.interval = None, LOOK_EVERY
        else:
            self.descriptor, self.interval = self._queue, None

    def clear(self) -> None:
        """Discard the notices; the file itself shows what changed."""
        try:
            os.read(self._queue, 65536)
        except BlockingIOError:
            pass

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
