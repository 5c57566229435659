"""Keeps a copy of a running experiment in a storage, and fetches it from there, on another machine perhaps.

The copy has what the experiment needs to continue: its database, reports, checkpoints and pickled code. The database is
read first and copied last, and files are removed only after that: all that the copied database names is there. What was
not copied before this machine was lost is run again, and never counted twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from stat import S_ISREG
from typing import Any

from ..protocol import MissingExtraError, require_extra
from ..trial_agent import sync, sync_tree
from .errors import SQLITE_ERRORS
from .folder import ExperimentFolder
from .paths import FolderError, absolute

_log = logging.getLogger(__name__)
_DATABASE = "experiment.db"
_FILES = ("experiment.yml", "annotations.json", "trial.pkl", "trial.json", "stopper.pkl")
_FOLDERS = ("trials", "checkpoint")
_EVERY = 10.0


class Mirror:
    """Copies an experiment's folder into a storage; `sync` may be called from any thread."""

    def __init__(self, folder: ExperimentFolder, location: str) -> None:
        self._folder = folder
        self._location = location
        self._storage: Storage | None = None
        self._known: dict[str, tuple[int, int]] = {}  # what is there: size and time of change
        self._failing = False
        self._one_at_a_time = threading.Lock()

    async def run(self) -> None:
        """Sync now and then, until cancelled."""
        while True:
            await asyncio.to_thread(self.sync)
            await asyncio.sleep(_EVERY)

    def sync(self) -> bool:
        """Bring the copy up to date; a storage that cannot be used is logged and tried again next time."""
        try:
            with self._one_at_a_time:
                self._sync()
        except (StorageError, OSError, *SQLITE_ERRORS) as error:
            if not self._failing:
                _log.error("the copy of the experiment is not up to date: %s", error)
            self._failing = True
            return False
        self._failing = False
        return True

    def _sync(self) -> None:
        storage = self._storage = self._storage or open_storage(self._location, self._folder.experiment_id)
        if not self._known:
            self._known = dict.fromkeys(storage.names(), (-1, -1))
        copy = self._folder.path / f".{_DATABASE}.copy"
        try:
            checkpoints = self._copy_database(copy)
            files = dict(self._files_here())
            for name, state in files.items():
                if self._known.get(name) != state and self._put(storage, name):
                    self._known[name] = state
            if not all(self._is_copied(path) for path in checkpoints):
                return  # pruned in between: the next look finds another
            storage.put(copy, _DATABASE)
        finally:
            copy.unlink(missing_ok=True)
        for name in self._known.keys() - files.keys() - {_DATABASE}:
            storage.remove(name)
            del self._known[name]

    def _files_here(self) -> Iterator[tuple[str, tuple[int, int]]]:
        root = self._folder.path
        for path in _files_of(root):
            name = path.relative_to(root).as_posix()
            if any(part.startswith(".") for part in name.split("/")):
                continue  # what begins with a dot is not finished
            try:
                about = path.stat()
            except FileNotFoundError:
                continue  # removed since
            if S_ISREG(about.st_mode):
                yield name, (about.st_size, about.st_mtime_ns)

    def _is_copied(self, checkpoint: str) -> bool:
        """Return whether a checkpoint is in the copy, as a whole: it is here still, so nothing of it was removed."""
        is_there = any(name.startswith(f"{checkpoint}/") for name in self._known)
        return is_there and (self._folder.path / checkpoint).is_dir()

    def _put(self, storage: Storage, name: str) -> bool:
        """Copy one file; False if it is gone by now (a checkpoint that was pruned)."""
        path = self._folder.path / name
        try:
            storage.put(path, name)
        except StorageError:
            if path.exists():
                raise
            return False
        return True

    def _copy_database(self, copy: Path) -> list[str]:
        """Copy the database as it is now; return the checkpoints from which its trials may continue."""
        copy.unlink(missing_ok=True)
        uri = f"{self._folder.database.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as live, closing(sqlite3.connect(copy)) as target:
            live.backup(target)
            target.execute("PRAGMA journal_mode = MEMORY")  # one file, which needs no log to be read
            rows = target.execute(
                "SELECT DISTINCT checkpoint FROM trials WHERE checkpoint IS NOT NULL AND copy_of IS NULL"
                " AND status IN ('WAITING', 'RUNNING', 'PAUSED')"
            )
            return [path for (path,) in rows]


def _files_of(root: Path) -> Iterator[Path]:
    """Yield what is to be copied, of what is there now: trials remove checkpoints while this looks."""
    yield from (root / name for name in _FILES)
    yield from sorted(root.glob("agents/*.jsonl"))
    for parent, _, names in os.walk(root / "code"):  # without what is only linked there
        yield from (path for name in sorted(names) if not (path := Path(parent, name)).is_symlink())
    for folder in _FOLDERS:
        for parent, _, names in os.walk(root / folder):
            yield from (Path(parent, name) for name in sorted(names))


def fetch_experiment(location: str, experiment_id: str, directory: Path) -> ExperimentFolder:
    """Make the folder of an experiment from its copy in a storage.

    Raise `FolderError` if it is here already or there is no copy, `StorageError` if the storage cannot be used.
    """
    folder = ExperimentFolder(directory / experiment_id)
    if folder.path.exists():
        raise FolderError(f"experiment {experiment_id} is here already, in {folder.path}")
    storage = open_storage(location, experiment_id)
    names = storage.names()
    if _DATABASE not in names:
        raise FolderError(f"there is no copy of experiment '{experiment_id}' in {location}")
    partial = directory / f".{experiment_id}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    for name in sorted(names):
        target = partial / name
        target.parent.mkdir(parents=True, exist_ok=True)
        storage.get(name, target)
    for part in ("logs", "agents", "trials", "checkpoint"):
        (partial / part).mkdir(exist_ok=True)
    sync_tree(partial)  # the folder is there with all it holds, or not at all
    partial.rename(folder.path)
    sync(directory)
    return folder


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
            require_extra(f"{url} needs", "storage")
        except MissingExtraError as error:
            raise StorageError(str(error)) from None
        from fsspec.core import url_to_fs  # pyright: ignore[reportMissingImports]

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
        if not self._explained(lambda: self._fs.exists(self._root)):
            return set()
        paths = self._explained(lambda: self._fs.find(self._root))
        return {str(path).removeprefix(f"{self._root}/") for path in paths}

    def _explained(self, call: Callable[[], Any]) -> Any:
        """Return the result of a call of fsspec, whose errors are those of many libraries."""
        try:
            return call()
        except Exception as error:
            raise StorageError(f"{self.url}: {type(error).__name__}: {error}") from error


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
