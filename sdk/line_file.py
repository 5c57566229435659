"""Appends whole lines to a file that many processes write. For the SDK: imports next to nothing."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from .errors import MachineError, own_calls

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC


class LineFile:
    """An append-only file; each line is one `write` on an O_APPEND descriptor, so lines never mix.

    A program may close descriptors that it does not know (a daemon closes all), and the number then belongs to the next
    file it opens. Each line makes sure of the file, and opens it again if need be.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "reports-1.jsonl")
    >>> file = LineFile(path)
    >>> file.append('{"final": 0.9}')
    >>> file.close()
    >>> open(path).read()
    '{"final": 0.9}\\n'
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)  # the program may change its directory
        with own_calls():
            self._descriptor, self._identity = _opened(self._path, _APPEND | os.O_CREAT)

    def append(self, line: str) -> None:
        """Append one line; raise MachineError if the disk does not take all of it, and leave no part of it.

        Raises FileNotFoundError if the descriptor was closed and the file is no longer at its path.
        """
        data = line.encode() + b"\n"
        try:
            written = self._write(data)
            if written != len(data):
                self._take_back(written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise MachineError.of(error, self._path) from None

    def sync(self) -> None:
        """Force what was appended to the disk; raise MachineError if that fails."""
        try:
            self._reach()
            os.fsync(self._descriptor)
        except OSError as error:
            raise MachineError.of(error, self._path) from None

    def _write(self, data: bytes) -> int:
        self._reach()
        try:
            return os.write(self._descriptor, data)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            self._open_again()  # the program has opened the same file, to read it, under this number
            return os.write(self._descriptor, data)

    def _reach(self) -> None:
        """Open the file again if its descriptor is closed or is that of another file by now."""
        if file_identity(self._descriptor) != self._identity:
            self._open_again()

    def _open_again(self) -> None:
        descriptor, identity = _opened(self._path, _APPEND)
        if identity != self._identity:
            os.close(descriptor)
            raise FileNotFoundError(
                errno.ENOENT,
                "the program has closed this file of reports and put another in its place",
                self._path,
            )
        self._descriptor = descriptor

    def _take_back(self, written: int) -> None:
        """Cut off an incomplete line, unless another process has appended since."""
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        if os.fstat(self._descriptor).st_size == end:
            os.ftruncate(self._descriptor, end - written)

    def close(self) -> None:
        """Close the file; what was appended is in it already."""
        if file_identity(self._descriptor) == self._identity:
            os.close(self._descriptor)


def note_refusal(path: str | os.PathLike[str], error: OSError) -> None:
    """Note the number of an error as the modification time of a file of reports, until the next line is written.

    A full disk has no room for a word, and Python ends without its traceback. A time needs no room.
    """
    number = error.errno or errno.EIO
    with suppress(OSError):  # the file of another user, in a container
        os.utime(path, (number, number))


def noted_refusal(path: str | os.PathLike[str]) -> MachineError | None:
    """Return what the machine has refused since the last line; None if nothing was noted.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "reports-1.jsonl")
    >>> file = LineFile(path)
    >>> note_refusal(path, OSError(errno.ENOSPC, "No space left on device"))
    >>> noted_refusal(path).errno == errno.ENOSPC
    True
    >>> file.append('{"final": 0.9}')
    >>> noted_refusal(path) is None
    True
    >>> file.close()
    """
    try:
        number = int(os.stat(path).st_mtime)
    except OSError:
        return None
    return MachineError(number, os.strerror(number), str(path)) if number in errno.errorcode else None


def file_identity(file: int | str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return what tells a file (pipe, socket) from others, also from one that replaces it at its path.

    The file is given by its descriptor or by its path. Return None if the descriptor is closed, or if there is no file.

    >>> reader, writer = os.pipe()
    >>> before = file_identity(reader)
    >>> os.dup2(0, reader) and file_identity(reader) == before
    False
    >>> os.close(reader); os.close(writer)
    >>> file_identity(reader) is None
    True
    """
    try:
        return _identity(file)
    except OSError:
        return None


def _identity(file: int | str | os.PathLike[str]) -> tuple[int, int]:
    about = os.stat(file)
    return about.st_dev, about.st_ino


def _opened(path: str, flags: int) -> tuple[int, tuple[int, int]]:
    descriptor = os.open(path, flags, 0o666)
    try:
        identity = _identity(descriptor)
        if descriptor > 2:
            return descriptor, identity
        import fcntl

        # A standard stream is closed: what the program prints must not get into this file.
        higher = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return higher, identity
