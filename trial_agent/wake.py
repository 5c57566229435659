"""A descriptor that another thread, or a signal handler, can make readable."""

from __future__ import annotations

import os

__all__ = ["Wake"]


class Wake:
    """Wakes a thread that waits in `poll`.

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
            os.write(self._writer, b"\0")
        except BlockingIOError:  # it has been readable for 65,536 calls
            pass

    def clear(self) -> bytes:
        """Make the descriptor unreadable until the next `set`; return the bytes that were written to it."""
        try:
            return os.read(self._reader, 65536)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close both ends."""
        os.close(self._reader)
        os.close(self._writer)
