"""Can anything be written? A full disk makes programs fail in ways that do not name it: their last words need room."""

from __future__ import annotations

import contextlib
import errno
import os

__all__ = ["ROOM", "no_room", "with_room"]

ROOM = 1 << 18
"""So many bytes can be written where there is room: what a small trial leaves behind."""

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS))


def no_room(folder: str | os.PathLike[str]) -> OSError | None:
    """Return why there is no room for `ROOM` bytes in a folder; None if there is (they are removed again).

    >>> import tempfile
    >>> no_room(tempfile.mkdtemp()) is None
    True
    """
    path = os.path.join(folder, f".room-{os.getpid()}")
    try:
        with open(path, "wb", buffering=0) as file:
            if (written := file.write(bytes(ROOM))) < ROOM:
                file.write(bytes(ROOM - written))  # says why
    except OSError as error:
        return error if error.errno in _NO_ROOM else None
    finally:
        with contextlib.suppress(OSError):  # not made, or on a disk that is read-only by now
            os.unlink(path)
    return None


def with_room(error: str | None, folder: str | os.PathLike[str]) -> str | None:
    """Return the last words of a trial that failed, and behind them that there is no room, if so."""
    why = no_room(folder)
    if why is None or (why.strerror or "") in (error or ""):
        return error
    return f"{error}\nOSError: {why}" if error else f"OSError: {why}"
