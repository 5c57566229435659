"""Errors of the machine, and the part of an error that an experiment keeps. Light, for the SDK."""

from __future__ import annotations

__all__ = ["TRACEBACK", "MachineError", "shortened"]

_CHARACTERS = 4096
_GAP = "\n  ...\n"
TRACEBACK = "Traceback (most recent call last)"


class MachineError(OSError):
    """A call that writes a report or a checkpoint failed: the machine's trouble, and not that of the trial's code.

    An attempt that ends with it is run again. The manager knows it by its name in a traceback.
    """

    @classmethod
    def of(cls, error: OSError, path: str) -> MachineError:
        """Return a failure of the system as one that names the file.

        >>> MachineError.of(OSError(28, "No space left on device"), "/exp/trials/0/reports-1.jsonl")
        MachineError(28, 'No space left on device')
        """
        return cls(error.errno, error.strerror, path)


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
