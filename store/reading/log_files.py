"""The logs of an experiment and the files of its trials, read in pieces: no file outside its folder is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST_FILES = 1000
_MOST_BYTES = 4 * 1024 * 1024


class NoSuchFile(LookupError):
    """There is no such file in the experiment's folder; the message lists those that exist."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file by its name, with its size in bytes and when it was last written (seconds since the epoch)."""

    name: str
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A piece of a text file: it begins at byte `offset`, the next one at `next_offset`; `size` is the whole file's."""

    text: str
    offset: int
    next_offset: int
    size: int


def list_files(folder: Path) -> list[LogFile]:
    """Return the regular files directly in a folder, by name."""
    return sorted(_files(folder), key=lambda file: file.name)[:_MOST_FILES]


def _files(folder: Path) -> Iterator[LogFile]:
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                yield LogFile(entry.name, status.st_size, status.st_mtime)


def safe_path(folder: Path, name: str) -> Path:
    """Return the file `name` directly in a folder; raise `NoSuchFile` for anything else, links included."""
    path = folder / name
    is_plain = name not in ("", ".", "..") and "/" not in name and "\\" not in name and "\0" not in name
    if not is_plain or path.is_symlink() or not path.is_file():
        known = ", ".join(file.name for file in list_files(folder)) or "none"
        raise NoSuchFile(f"there is no file '{name[:100]}' here; there are: {known}")
    return path


def read_piece(path: Path, offset: int = 0, limit: int = _MOST_BYTES) -> FilePiece:
    """Return at most `limit` bytes from byte `offset`, cut at the end of a character; beyond the end, nothing."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NoSuchFile(f"{path.name} is not a regular file")
        offset = min(offset, status.st_size)
        file.seek(offset)
        data = file.read(min(limit, _MOST_BYTES))
    data = data[: len(data) - _unfinished(data)]
    return FilePiece(data.decode(errors="replace"), offset, offset + len(data), status.st_size)


def read_tail(path: Path, lines: int, most_bytes: int = _MOST_BYTES) -> FilePiece:
    """Return the last lines of a file, at most `most_bytes` bytes of them."""
    size = path.stat().st_size
    piece = read_piece(path, max(0, size - most_bytes), most_bytes)
    text = piece.text
    kept = text.splitlines(keepends=True)[-lines:] if lines else []
    last = "".join(kept)
    return FilePiece(last, piece.next_offset - len(last.encode()), piece.next_offset, piece.size)


def _unfinished(data: bytes) -> int:
    """Return how many bytes at the end are the beginning of an incomplete character."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if length > back else 0
        if byte < 0x80:
            return 0
    return 0
