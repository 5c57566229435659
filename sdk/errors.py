"""Errors of the machine, and the part of an error that an experiment keeps. Light, for the SDK."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OF_MACHINE = frozenset(
    (
        *(errno.EAGAIN, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM),
        *(errno.ENOSPC, errno.EROFS, errno.ESTALE, errno.ETXTBSY),
    )
)

_CHARACTERS = 4096
_GAP = "\n  ...\n"
TRACEBACK = "Traceback (most recent call last)"


class MachineError(OSError):
    """A call that writes a report or a checkpoint failed: the machine's trouble, and not that of the trial's code.

    An attempt that ends with it is run again. The manager knows it by its name in a traceback.
    """

    @classmethod
    def of(cls, error: OSError, path: str | None = None) -> MachineError:
        """Return a failure of the system as one that names the file.

        >>> print(MachineError.of(OSError(28, "No space left on device"), "reports-1.jsonl"))
        [Errno 28] No space left on device: 'reports-1.jsonl'
        """
        return cls(error.errno, error.strerror or str(error), path or error.filename)


def is_of_machine(error: OSError) -> bool:
    """Return whether an error can only be the machine's, whatever the call: it has run out of something, or is broken.

    >>> is_of_machine(OSError(errno.EMFILE, "Too many open files")), is_of_machine(FileNotFoundError(2, "no file"))
    (True, False)
    """
    return error.errno in _OF_MACHINE


def is_there(path: str, kind: Callable[[int], bool]) -> bool:
    """Return whether a path is of a kind, such as `stat.S_ISDIR`; raise an error of the machine, which `os.path` hides.

    >>> import stat
    >>> is_there("/", stat.S_ISDIR), is_there("/no/such/folder", stat.S_ISDIR)
    (True, False)
    """
    try:
        return kind(os.stat(path).st_mode)
    except OSError as error:
        if is_of_machine(error):
            raise
        return False


@contextmanager
def own_calls() -> Iterator[None]:
    """Make a MachineError of each OSError inside: the calls are this package's, and no user can mend them."""
    try:
        yield
    except MachineError:
        raise
    except OSError as error:
        raise MachineError.of(error) from None


def shortened(text: str, limit: int = _CHARACTERS) -> str:
    """Return the last lines of a text, at most `limit` characters; of a traceback, also its first lines.

    The user's own lines are the first ones of a traceback that ends deep in a library.

    >>> shortened("one\\ntwo\\nthree", 10)
    'two\\nthree'
    >>> shortened(f"{TRACEBACK}:\\n" + "  line\\n" * 99 + "ValueError: x", 120).splitlines()[:3]
    ['Traceback (most recent call last):', '  ...', '  line']
    """
    if len(text) <= limit:
        return text
    first = text[: limit // 3].rpartition("\n")[0] if text.startswith(TRACEBACK) else ""
    head = f"{first}{_GAP}" if first else ""
    last = text[len(head) - limit :]
    return head + (last.partition("\n")[2] or last)
