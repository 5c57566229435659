"""The disk: files that are forced to it or written whole, and whether it is full, which programs often cannot say."""

from __future__ import annotations

import contextlib
import errno
import os

NEEDED = 1 << 18
"""The bytes that must fit: about what a small trial writes."""
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS))


def sync(path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None:
    """Force one file or folder to the disk; with `root`, also its parent folders up to `root` itself."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if root is not None and os.fspath(path) not in (os.fspath(root), os.sep):
        sync(os.path.dirname(path), root)


def sync_tree(folder: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None:
    """Force a folder and its contents to the disk; with `root`, also its parents, as `sync` does."""
    for parent, _, names in os.walk(folder, topdown=False):
        for path in (os.path.join(parent, name) for name in names):
            if os.path.isfile(path) and not os.path.islink(path):
                sync(path)
        sync(parent, root if parent == os.fspath(folder) else None)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file completely or not at all; hard links to an earlier file of this name keep its content."""
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}")
    with open(draft, "wb") as file:
        file.write(data)
    os.replace(draft, path)


def disk_error(folder: str | os.PathLike[str]) -> OSError | None:
    """Return why `NEEDED` bytes do not fit into a folder; None if they do (they are removed again).

    >>> import tempfile
    >>> disk_error(tempfile.mkdtemp()) is None
    True
    """
    path = os.path.join(folder, f".space-{os.getpid()}")
    try:
        with open(path, "wb", buffering=0) as file:
            if (count := file.write(bytes(NEEDED))) < NEEDED:
                file.write(bytes(NEEDED - count))  # raises the reason
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
