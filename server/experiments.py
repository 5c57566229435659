"""The experiments that a server shows, each with one view and one cache of responses for all clients."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVarTuple

from ..protocol import Json
from ..store import ExperimentFolder, FolderError, StoreError, absolute
from ..store.reading import ExperimentView, to_json

_CURRENT = "current"
_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_FRESH = 0.25
# A constantly requested response costs at most a tenth of the time, unless it takes very long to compute.
_COST = 10.0
_STALEST = 3.0
_MOST_BYTES = 32 * 1024 * 1024
_MOST_ENTRIES = 1000
Arguments = TypeVarTuple("Arguments")


@dataclass(frozen=True, slots=True)
class ServedExperiment:
    """An experiment of this server: its view, its cached responses, and the identity of its database file."""

    view: ExperimentView
    responses: ResponseCache
    inode: int

    def response(
        self,
        compute: Callable[[ExperimentView, *Arguments], object],
        *arguments: *Arguments,
        lasting: float = math.inf,
    ) -> CachedResponse:
        """Return what `compute` returns for the view and hashable arguments, computed once for all clients.

        It is computed again when the experiment has changed, and after `lasting` seconds. The function and its
        arguments are the key: nothing else may change the result.
        """
        return self.responses.get((compute, *arguments), lambda: compute(self.view, *arguments), lasting)

    def cached(self, compute: Callable[[ExperimentView, *Arguments], object], *arguments: *Arguments) -> Json:
        """Return the value that a response has as JSON."""
        return json.loads(self.response(compute, *arguments).body)


class Experiments:
    """Finds experiments by their ids; thread-safe.

    `directory` contains the folders of experiments. With `only`, no other experiment than that with this id is shown.
    """

    def __init__(self, directory: Path, only: str | None = None) -> None:
        self.directory = absolute(directory)
        self.only = only
        self._lock = threading.Lock()
        self._served: dict[Path, ServedExperiment] = {}

    def view(self, name: str) -> ExperimentView:
        """Return the view of an experiment; raise `LookupError` if there is none."""
        return self.served(name).view

    def views(self) -> list[ExperimentView]:
        """Return the views of all experiments."""
        return [served.view for served in self.all()]

    def all(self) -> list[ServedExperiment]:
        """Return all experiments."""
        return [self._of(folder) for folder in self._folders()]

    def served(self, name: str) -> ServedExperiment:
        """Find an experiment by its id, the unique beginning of one, or `current`; raise `LookupError` without one.

        `current` is the only one shown, else the newest that is running, else the newest.
        """
        if name == _CURRENT:
            return self._of(self._current())
        folder = self._folder(name)
        if self.only is not None and folder.experiment_id != self.only:
            raise LookupError(f"this server shows experiment {self.only} only")
        return self._of(folder)

    def close(self) -> None:
        """Close all views."""
        with self._lock:
            served, self._served = self._served, {}
        for experiment in served.values():
            experiment.view.close()

    def _folder(self, name: str) -> ExperimentFolder:
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
            return 0.0  # an unreadable experiment does not hide the others

    def _of(self, folder: ExperimentFolder) -> ServedExperiment:
        with self._lock:
            served = self._served.get(folder.path)
            inode = folder.database.stat().st_ino
            if served is not None and served.inode != inode:  # deleted, and created again with the same id
                served.view.close()
                served = None
            if served is None:
                view = ExperimentView(folder)
                served = ServedExperiment(view, ResponseCache(view.database.version), inode)
                self._served[folder.path] = served
            return served


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """The JSON text of a response, and its tag."""

    body: bytes
    tag: str


@dataclass(slots=True, kw_only=True)
class _Entry:
    """A cached response with the database version it comes from; the lock is held while it is computed."""

    lock: threading.Lock
    response: CachedResponse | None = None
    version: int = -1
    made: float = 0.0
    fresh: float = 0.0
    checked: float = 0.0

    @property
    def size(self) -> int:
        return 0 if self.response is None else len(self.response.body)


class ResponseCache:
    """The responses about one experiment: each is computed once for all clients. Thread-safe; `clock` returns seconds.

    Fifty polling clients cost as much as one: a cached response is returned without checking the store for a quarter of
    a second (longer if it took long to compute), and then as long as the version of the database stays the same.
    Responses are JSON text with a tag, so that a client that has one need not receive it again.
    """

    def __init__(self, version: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._version = version
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], object], lasting: float = math.inf) -> CachedResponse:
        """Return the response for `key`, from the cache or computed by `compute`.

        After `lasting` seconds it is computed again in any case: parts of it are not in the store.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(lock=threading.Lock()))
            self._entries.move_to_end(key)
            # A client may ask for any number of trials that do not exist.
            if len(self._entries) > _MOST_ENTRIES:
                self._entries.popitem(last=False)
        with entry.lock:
            now = self._clock()
            if entry.response is not None and now - entry.made < lasting:
                if now - entry.checked < entry.fresh:
                    return entry.response
                entry.checked = now
                if self._version() == entry.version:
                    return entry.response
            version = self._version()
            body = to_json(compute())
            response = CachedResponse(body, hashlib.blake2b(body, digest_size=12).hexdigest())
            entry.response, entry.version = response, version
            entry.made = entry.checked = done = self._clock()
            entry.fresh = min(max(_FRESH, _COST * (done - now)), _STALEST)
        self._evict()
        return response

    def _evict(self) -> None:
        """Drop the least recently used responses until the rest fits."""
        with self._lock:
            size = sum(entry.size for entry in self._entries.values())
            while size > _MOST_BYTES and len(self._entries) > 1:
                size -= self._entries.popitem(last=False)[1].size
