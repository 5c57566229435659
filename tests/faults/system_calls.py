"""Builds and steers the library of calls.c: one call of a process fails or is its last, or the disk is recorded."""

from __future__ import annotations

import errno
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ERRORS", "EVERY", "FAMILIES", "ROLES", "Call", "Change", "Counts", "build_library", "read_record"]

# In the order of calls.c.
ROLES = ("manager", "dispatcher", "agent", "trial", "other")
EVERY = "every"  # call that changes something outside of the process: what a kill can interrupt
# What each family of calls can meet on a machine that is short of something, or broken.
ERRORS = {
    "open": (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EIO),
    "write": (errno.ENOSPC, errno.EIO, errno.EDQUOT),
    "sync": (errno.EIO, errno.ENOSPC),
    "rename": (errno.ENOSPC, errno.EIO),
    "unlink": (errno.EIO, errno.EROFS),
    "mkdir": (errno.ENOSPC, errno.EIO),
    "connect": (errno.ECONNREFUSED, errno.EAGAIN),
    "send": (errno.EPIPE, errno.ECONNRESET, errno.ENOBUFS),
    "recv": (errno.ECONNRESET,),
    "accept": (errno.EMFILE, errno.ECONNABORTED),
    "fork": (errno.EAGAIN, errno.ENOMEM),
    "thread": (errno.EAGAIN,),
    "mmap": (errno.ENOMEM,),
}
FAMILIES = (*ERRORS, EVERY)
_COUNTERS = len(ROLES) * len(FAMILIES)
_HERE = Path(__file__).resolve().parent


def build_library(folder: Path) -> Path:
    """Compile calls.c into this folder; raise `FileNotFoundError` where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("there is no C compiler (cc or gcc)")
    library = folder / "calls.so"
    words = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", str(library)]
    subprocess.run([*words, str(_HERE / "calls.c"), "-ldl", "-pthread"], check=True)
    return library


@dataclass(frozen=True)
class Call:
    """The n-th call of a family by the processes of a role, counted together: it fails, or kills the process."""

    role: str
    family: str
    n: int
    errno: int = 0  # 0 kills
    lasts: bool = False  # all later calls fail, too, until the machine is well again

    def __str__(self) -> str:
        return f"{self.role} {self.family} {self.n} {self.errno}{'+' if self.lasts else ''}"

    @classmethod
    def parse(cls, text: str) -> Call:
        """Read what `str` gives."""
        role, family, n, number = text.split()
        return cls(role, family, int(n), int(number.rstrip("+")), number.endswith("+"))


class Counts:
    """The counters that all processes of an experiment share, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(8 * (_COUNTERS + 1)))

    def read(self) -> dict[tuple[str, str], int]:
        """Return how many calls there were, by role and family."""
        numbers = struct.unpack_from(f"={_COUNTERS}Q", self.path.read_bytes())
        keys = [(role, family) for role in ROLES for family in FAMILIES]
        return dict(zip(keys, numbers, strict=True))

    def heal(self) -> None:
        """Have no more calls fail."""
        with self.path.open("r+b") as file:
            file.seek(8 * _COUNTERS)
            file.write(struct.pack("=Q", 1))


_HEAD = struct.Struct("=Ic3xQQIII4x")


@dataclass(frozen=True)
class Change:
    """A change of the disk.

    `what` is w(rite), t(runcate to `offset`), c(reate), s(ync), r(ename to `other`), l(ink as `other`), u(nlink),
    m(ake a folder), or y: a symbolic link to `other`.
    """

    what: str
    inode: int
    offset: int
    path: str
    other: str
    data: bytes


def read_record(path: Path) -> Iterator[Change]:
    """Yield what calls.c has recorded."""
    record = path.read_bytes()
    place = 0
    while place < len(record):
        size, what, inode, offset, path_size, other_size, data_size = _HEAD.unpack_from(record, place)
        texts = record[place + _HEAD.size : place + size]
        other, data = path_size, path_size + other_size
        assert len(texts) == data + data_size
        yield Change(
            what.decode(), inode, offset, texts[:other].decode(), texts[other:data].decode(), texts[data:]
        )
        place += size
