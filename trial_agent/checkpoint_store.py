"""The checkpoints of one trial, as the agent sees them: which exist, and which may be removed."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import stat
import sys
from dataclasses import dataclass

import orjson

from ..sdk import ABOUT, is_there, remove
from .agent_events import Saved, SpoolProblem
from .disk import sync, sync_tree, write_whole
from .messages import Keeping

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    value: float | None
    time: float
    number: int = 0  # that of its event; 0 for what an earlier attempt saved


class CheckpointStore:
    """The folder with the checkpoints of a trial, during one attempt; not thread-safe.

    These are never removed: the latest, the one this attempt was restored from (its path is `restored`), and those
    that the manager may take for the latest: it has confirmed some events and may have read those sent since then.
    If `synced_root` is given, a new one is forced to the disk, with the folders from there on.
    """

    def __init__(
        self,
        folder: str,
        attempt: int,
        keeping: Keeping,
        restored: str | None = None,
        *,
        synced_root: str | None = None,
    ) -> None:
        self.folder = folder
        self._synced_root = synced_root
        self._attempt = attempt
        self._keeping = keeping
        here = restored is not None and os.path.dirname(restored) == folder
        self._restored = os.path.basename(restored) if restored is not None and here else None
        self._entries: dict[str, _Entry] | None = None  # in the order in which they were saved

    def admit(self, event: Saved) -> Saved | SpoolProblem:
        """Note a new checkpoint and describe it in its folder; return its event, or the problem with it."""
        name = event.name
        path = os.path.join(self.folder, name)
        try:
            if not is_there(path, stat.S_ISDIR):
                return self._problem(event, f"there is no folder {path}")
            if name in self._known():
                return self._problem(event, "it was saved before: give each one a name of its own")
            self._describe(path, event)
        except OSError as error:
            return self._problem(event, f"cannot write to it: {error}", infra=True)
        self._known()[name] = _Entry(event.value, event.time, sys.maxsize)
        return event

    def _describe(self, path: str, event: Saved) -> None:
        """Write what the manager needs to know; after a power cut, this file shows that all the others are there."""
        if self._synced_root is not None:
            sync_tree(path)
        about = {"sequence": event.sequence, "value": event.value, "time": event.time}
        write_whole(os.path.join(path, ABOUT), orjson.dumps(about))
        if self._synced_root is not None:
            sync(os.path.join(path, ABOUT))
            sync(path, self._synced_root)

    def prune(self, last: int, confirmed: int, sent: int) -> None:
        """Remove what need not stay, once the events of all that was admitted are in the outbox.

        `last` is the number of the last event there, `confirmed` that up to which the manager has committed them,
        and `sent` that up to which they are on their way to it.
        """
        entries = self._known()
        for name, entry in entries.items():
            if entry.number > last:
                entries[name] = _Entry(entry.value, entry.time, last)
        latest_first = reversed(entries)
        ranked = sorted(latest_first, key=lambda name: self._score(entries[name]), reverse=True)
        stay = {self._restored, *ranked[: self._keeping.keep]}
        for number in (last, sent, confirmed):
            stay.update([name for name, entry in entries.items() if entry.number <= number][-1:])
        for name in [name for name in entries if name not in stay]:
            del entries[name]
            remove(os.path.join(self.folder, name))

    def tidy(self) -> None:
        """Remove what this attempt did not finish saving, and the folder if it is empty."""
        try:
            entries = self._known()
            for name in _names(self.folder):
                mine = name.lstrip(".").startswith(f"{self._attempt}-")
                if mine and name not in entries and name != self._restored:
                    remove(os.path.join(self.folder, name))
        except OSError as error:  # the next attempt tidies up: nothing that counts depends on it
            _log.warning("what trial checkpoints in %s left unfinished stays: %s", self.folder, error)
            return
        with contextlib.suppress(OSError):  # there are checkpoints
            os.rmdir(self.folder)

    def _known(self) -> dict[str, _Entry]:
        """Return the checkpoints; at first the ones that earlier attempts finished saving."""
        if self._entries is None:
            entries: dict[str, _Entry] = {}
            for name in _names(self.folder):
                # What begins with a dot is not finished, or was about to be removed.
                entry = None if name.startswith(".") else _read(os.path.join(self.folder, name))
                if entry is not None:
                    entries[name] = entry
                elif name != self._restored and not name.lstrip(".").startswith(f"{self._attempt}-"):
                    remove(os.path.join(self.folder, name))
            self._entries = dict(sorted(entries.items(), key=lambda item: item[1].time))
        return self._entries

    def _score(self, entry: _Entry) -> float:
        """Return the rank of a checkpoint: a higher one is kept longer, and of equals the latest."""
        if self._keeping.rank_by != "score":
            return 0.0
        if entry.value is None:
            return -math.inf
        return -entry.value if self._keeping.mode == "minimize" else entry.value

    def _problem(self, event: Saved, why: str, *, infra: bool = False) -> SpoolProblem:
        message = f"the checkpoint {event.name!r} does not count: {why}"
        return SpoolProblem(
            trial=event.trial, attempt=event.attempt, message=message, infra=infra, mark=event.mark
        )


def is_whole(folder: str | os.PathLike[str]) -> bool:
    """Return whether an agent has admitted a checkpoint: with `durability: power`, all of it is on the disk then."""
    return _read(os.fspath(folder)) is not None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _read(path: str) -> _Entry | None:
    try:
        with open(os.path.join(path, ABOUT), "rb") as file:
            about = orjson.loads(file.read())
        value = about["value"]
        number = float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
        return _Entry(number, float(about["time"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
