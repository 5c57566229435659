"""Appends whole lines to a file that many processes write. For the SDK: imports next to nothing."""

from __future__ import annotations

import errno
import os

__all__ = ["LineFile"]


class LineFile:
    """An append-only file; each line is one `write` on an O_APPEND descriptor, so lines never mix.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "reports-1.jsonl")
    >>> file = LineFile(path)
    >>> file.append('{"final": 0.9}')
    >>> file.close()
    >>> open(path).read()
    '{"final": 0.9}\\n'
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def append(self, line: str) -> None:
        """Append one line; raise OSError if the disk does not take all of it, and leave no part of it."""
        data = line.encode() + b"\n"
        written = os.write(self._descriptor, data)
        if written != len(data):
            self._take_back(written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Force what was appended to the disk."""
        os.fsync(self._descriptor)

    def _take_back(self, written: int) -> None:
        """Cut off an incomplete line, unless another process has appended since."""
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        if os.fstat(self._descriptor).st_size == end:
            os.ftruncate(self._descriptor, end - written)

    def close(self) -> None:
        """Close the file; what was appended is in it already."""
        os.close(self._descriptor)
