"""Memory: the kernel's count of the processes it killed for lack of it, and readable numbers of bytes."""

from __future__ import annotations

__all__ = ["gibibytes", "oom_kills"]


def oom_kills(path: str = "/proc/vmstat") -> int:
    """Return how many processes this machine's kernel has killed for lack of memory; 0 where it does not count.

    A trial that Pitchpipe did not kill, but that got SIGKILL while this number grew, was one of them.

    >>> oom_kills() >= 0, oom_kills("/no/such/file")
    (True, 0)
    """
    try:
        with open(path, "rb") as file:
            counts = dict(line.split() for line in file)
        return int(counts[b"oom_kill"])
    except (OSError, ValueError, KeyError):
        return 0


def gibibytes(number: int) -> str:
    """Return a readable number of bytes.

    >>> gibibytes(4 * 2**30), gibibytes(300 * 2**20)
    ('4 GiB', '0.29 GiB')
    """
    return f"{number / 2**30:.2g} GiB" if number < 10 * 2**30 else f"{number / 2**30:.0f} GiB"
