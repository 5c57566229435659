"""Checks for free disk space: a program that fails on a full disk often cannot report the cause."""

from __future__ import annotations

import contextlib
import errno
import os

NEEDED = 1 << 18
"""The bytes that must fit: about what a small trial writes."""

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS))


def disk_error(folder: str | os.PathLike[str]) -> OSError | None:
    """Return why `NEEDED` bytes do not fit into a folder; None if they do (they are removed again).

    >>> import tempfile
    >>> disk_error(tempfile.mkdtemp()) is None
    True
    """
    path = os.path.join(folder, f".space-{os.getpid()}")
    try:
        with open(path, "wb", buffering=0) as file:
            if (written := file.write(bytes(NEEDED))) < NEEDED:
                file.write(bytes(NEEDED - written))  # raises the reason
    except OSError as error:
        return error if error.errno in _FULL else None
    finally:
        with contextlib.suppress(OSError):  # not made, or the disk has become read-only
            os.unlink(path)
    return None


def with_disk_error(error: str | None, folder: str | os.PathLike[str]) -> str | None:
    """Return a failed trial's error; if the disk is full, add that."""
    why = disk_error(folder)
    return error if why is None else with_cause(error, why)


def with_cause(error: str | None, why: OSError) -> str:
    """Return a failed trial's error with a last line that says what the machine refused, unless it ends with that.

    >>> with_cause("training failed", OSError(errno.ENOSPC, "No space left on device"))
    'training failed\\nOSError: [Errno 28] No space left on device'
    """
    error = (error or "").rstrip()
    if why.strerror and why.strerror in error.rpartition("\n")[2]:
        return error
    return f"{error}\n{type(why).__name__}: {why}".lstrip()
