"""A copy of the code directory, from which all trials of an experiment run, whatever changes meanwhile.

Small files are copied, those behind symbolic links as well. Large files and folders without code become links to the
originals, so that scripts find their data, and a folder of any size is copied in a moment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from ..store import FolderError

IGNORE_FILE = ".pitchpipeignore"
_LARGE = 1 << 20  # bytes of a file that is linked
_MOST_FILES = 5_000
_MOST_BYTES = 256 << 20
_NO_CODE = (".git", ".hg", ".svn", ".venv", "venv", "node_modules", "*.egg-info")
_REMADE = ("__pycache__",)  # Python writes them again


def take_snapshot(directory: Path, target: Path) -> None:
    """Copy the code in `directory` to the new folder `target`; raise `FolderError` if that is too much or fails.

    Each line of `.pitchpipeignore` is a pattern of names, or of paths in the directory, that are linked.
    """
    directory = directory.resolve()
    snapshot = _Snapshot(directory, target.resolve(), _ignored(directory))
    try:
        snapshot.copy(directory)
    except OSError as error:
        raise FolderError(f"trial_code: snapshot: {error.filename or directory}: {error.strerror}") from error


def _ignored(directory: Path) -> list[str]:
    try:
        lines = (directory / IGNORE_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    patterns = [line.strip().strip("/") for line in lines if not line.lstrip().startswith("#")]
    return [pattern for pattern in patterns if pattern]


class _Snapshot:
    """The state of one copy."""

    def __init__(self, directory: Path, target: Path, patterns: Sequence[str]) -> None:
        self._directory = directory
        self._target = target
        self._patterns = (*_NO_CODE, *patterns)
        self._files = self._bytes = 0

    def copy(self, folder: Path) -> None:
        """Copy a folder of the directory, with all that is in it."""
        place = self._target / folder.relative_to(self._directory)
        place.mkdir()
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                with suppress(FileNotFoundError):  # it vanished meanwhile
                    self._copy_entry(entry, place / entry.name)

    def _copy_entry(self, entry: os.DirEntry[str], place: Path) -> None:
        if entry.name in _REMADE:
            return
        path = Path(entry.path)
        if self._is_linked(path):
            place.symlink_to(path)
        elif entry.is_dir(follow_symlinks=False):
            self.copy(path)
        elif entry.is_file() and (size := entry.stat().st_size) <= _LARGE:
            self._count(size)
            shutil.copy2(path, place)
        elif entry.is_symlink():
            self._link_again(path, place)
        elif entry.is_file():
            place.symlink_to(path)

    def _link_again(self, path: Path, place: Path) -> None:
        """Link to what a symbolic link leads to: inside the directory to the copy of that."""
        original = path.resolve()
        if original.is_relative_to(self._directory):
            original = self._target / original.relative_to(self._directory)
        place.symlink_to(original)

    def _is_linked(self, path: Path) -> bool:
        # An experiment's folder may lie beside the code: a copy of it would hold itself.
        if self._target.is_relative_to(path):
            return True
        inside = path.relative_to(self._directory).as_posix()
        return any(fnmatch(path.name, pattern) or fnmatch(inside, pattern) for pattern in self._patterns)

    def _count(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        if self._files > _MOST_FILES or self._bytes > _MOST_BYTES:
            limit = f"{_MOST_FILES:,} files or {_MOST_BYTES >> 20} MB"
            raise FolderError(
                f"trial_code: snapshot: {self._directory} has more than {limit} below 1 MB each: name the folders"
                f" without code in {self._directory / IGNORE_FILE}, one on a line"
            )
