"""Places outside this machine that keep files by name: a mounted folder, or anything that fsspec has a URL for."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from ..trial_agent import sync
from .paths import absolute


class StorageError(Exception):
    """The storage cannot be used; the message says which and why."""


class Storage(ABC):
    """Files by name; a name is a relative path with slashes. All methods may raise `StorageError`."""

    @abstractmethod
    def put(self, source: Path, name: str) -> None:
        """Store a file, whole or not at all where the place can do that."""

    @abstractmethod
    def get(self, name: str, target: Path) -> None:
        """Fetch a file into a folder that exists."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file; nothing happens if there is none."""

    @abstractmethod
    def names(self) -> set[str]:
        """Return the names of all files; none if the place does not exist yet."""


def open_storage(location: str, inside: str) -> Storage:
    """Return the part `inside` of a storage, which is the path of a folder or a URL.

    Raise `StorageError`, or `FolderError` for a path that leads nowhere.

    >>> open_storage("/no/such/folder", "k3x9a2bq").names()
    set()
    """
    if "://" not in location:
        return FolderStorage(absolute(location) / inside)
    if location.startswith("file://"):
        return FolderStorage(Path(location.removeprefix("file://")) / inside)
    return UrlStorage(location.rstrip("/") + "/" + inside)


class FolderStorage(Storage):
    """A folder, perhaps on another machine's disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, source: Path, name: str) -> None:
        """Copy under a temporary name, then rename."""
        target = self.folder / name
        partial = target.with_name(f".{target.name}.partial")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, partial)
            sync(partial)  # the database comes last: what it names is on the disk before it
            partial.replace(target)
        except OSError as error:
            raise StorageError(f"{target} cannot be written: {error.strerror or error}") from error

    def get(self, name: str, target: Path) -> None:
        """Copy back."""
        try:
            shutil.copy2(self.folder / name, target)
        except OSError as error:
            raise StorageError(f"{self.folder / name} cannot be read: {error.strerror or error}") from error

    def remove(self, name: str) -> None:
        """Remove the file, and the folders that it leaves empty."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        for parent in path.parents:
            if parent == self.folder or any(parent.iterdir()):
                return
            parent.rmdir()

    def names(self) -> set[str]:
        """Return the names of all files in the folder but those that are being written."""
        return {
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.endswith(".partial")
        }


class UrlStorage(Storage):
    """What fsspec reaches: object stores, SSH, HDFS ..."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            from fsspec.core import url_to_fs  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise StorageError(f"{url} needs fsspec: pip install fsspec") from None
        self._fs, self._root = self._explained(lambda: url_to_fs(url))

    def put(self, source: Path, name: str) -> None:
        """Upload."""
        path = f"{self._root}/{name}"
        self._explained(lambda: self._fs.makedirs(path.rpartition("/")[0], exist_ok=True))
        self._explained(lambda: self._fs.put_file(str(source), path))

    def get(self, name: str, target: Path) -> None:
        """Download."""
        self._explained(lambda: self._fs.get_file(f"{self._root}/{name}", str(target)))

    def remove(self, name: str) -> None:
        """Remove the file."""
        path = f"{self._root}/{name}"
        if self._explained(lambda: self._fs.exists(path)):
            self._explained(lambda: self._fs.rm_file(path))

    def names(self) -> set[str]:
        """Return the names of all files below the URL."""
        self._explained(self._fs.invalidate_cache)
        found = self._explained(lambda: self._fs.find(self._root)) if self._explained(self._exists) else []
        return {str(path).removeprefix(f"{self._root}/") for path in found}

    def _exists(self) -> bool:
        return bool(self._fs.exists(self._root))

    def _explained(self, work: Any) -> Any:
        try:
            return work()
        except Exception as error:
            raise StorageError(f"{self.url}: {type(error).__name__}: {error}") from error
