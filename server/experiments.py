"""The experiments that a server shows: all of a directory, or one; each has one view for all clients."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..store import ExperimentFolder, FolderError, StoreError, absolute
from ..store.reading import ExperimentView
from .response_cache import ResponseCache

_CURRENT = "current"
_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True, slots=True)
class Shown:
    """One experiment: its view, its cached responses, and the identity of its database file."""

    view: ExperimentView
    responses: ResponseCache
    inode: int


class Experiments:
    """Finds experiments by their ids; thread-safe.

    `directory` contains the folders of experiments; with `only`, just the one with this id is shown.
    """

    def __init__(self, directory: Path, only: str | None = None) -> None:
        self.directory = absolute(directory)
        self.only = only
        self._lock = threading.Lock()
        self._shown: dict[Path, Shown] = {}

    def view(self, name: str) -> ExperimentView:
        """Return the view of an experiment; raise `LookupError` if there is none."""
        return self.shown(name).view

    def views(self) -> list[ExperimentView]:
        """Return the views of all experiments."""
        return [shown.view for shown in self.all()]

    def all(self) -> list[Shown]:
        """Return all experiments."""
        return [self._of(folder) for folder in self._folders()]

    def shown(self, name: str) -> Shown:
        """Find an experiment by its id, a unique beginning of one, or `current`; raise `LookupError` if there is none.

        `current` is the only one shown, else the one that is running, else the newest.
        """
        if name == _CURRENT:
            return self._of(self._current())
        folder = self._found(name)
        if self.only is not None and folder.experiment_id != self.only:
            raise LookupError(f"this server shows experiment {self.only} only")
        return self._of(folder)

    def close(self) -> None:
        """Close all views."""
        with self._lock:
            shown, self._shown = self._shown, {}
        for each in shown.values():
            each.view.close()

    def _found(self, name: str) -> ExperimentFolder:
        whole = ExperimentFolder(self.directory / name) if _ID.fullmatch(name) else None
        if whole is not None and whole.has_experiment:
            return whole
        try:
            return ExperimentFolder.find(self.directory, name[:100])
        except FolderError as error:
            raise LookupError(str(error)) from error

    def _folders(self) -> Iterator[ExperimentFolder]:
        for folder in ExperimentFolder.all(self.directory):
            if self.only in (None, folder.experiment_id):
                yield folder

    def _current(self) -> ExperimentFolder:
        folders = list(self._folders())
        if not folders:
            raise LookupError(f"there is no experiment in {self.directory}")
        running = [folder for folder in folders if folder.manager() is not None]
        return max(running or folders, key=self._created)

    def _created(self, folder: ExperimentFolder) -> float:
        try:
            return self._of(folder).view.experiment().created
        except StoreError:
            return 0.0  # it does not hide the others

    def _of(self, folder: ExperimentFolder) -> Shown:
        with self._lock:
            shown = self._shown.get(folder.path)
            inode = folder.database.stat().st_ino
            if shown is not None and shown.inode != inode:  # deleted, and created again with the same id
                shown.view.close()
                shown = None
            if shown is None:
                view = ExperimentView(folder)
                shown = Shown(view, ResponseCache(view.database.version), inode)
                self._shown[folder.path] = shown
            return shown
