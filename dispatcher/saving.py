"""Checkpoints of the dispatcher: when one is due, how its halves come together, and the file.

Each worker puts its half by at its own border between commands, behind the same command; the later of the two writes
the file. A file is a line that says what it is, a line with the checksum of the rest, and the rest, pickled.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["CheckpointUnusable", "Saver", "read_checkpoint"]

TRY_AGAIN_S = 10.0
"""How long no other checkpoint is made behind one that could not be written."""

_logger = logging.getLogger("pitchpipe.dispatcher")
_HEAD = b"pitchpipe dispatcher checkpoint 1\n"


class CheckpointUnusable(Exception):
    """A checkpoint cannot be restored; the message names the file and says why."""


class Saver:
    """Writes checkpoints into `folder`.

    One is due when handling the commands since the last one took `worth` seconds and `spacing` times as long as the
    last one has passed since, so that checkpoints cost at most 2 % of the time.
    """

    def __init__(
        self,
        folder: Path,
        worth: float = 1.0,
        spacing: float = 50.0,
        clock: Callable[[], float] = time.monotonic,
        effort: Callable[[], float] = time.thread_time,  # on a busy machine, waiting is nobody's cost
    ) -> None:
        self.problem: BaseException | None = None
        self._folder = folder
        self._worth, self._spacing, self._clock, self._effort = worth, spacing, clock, effort
        self._halves: dict[str, bytes] = {}
        self._expected = 0  # how many halves are still to come; 0: no checkpoint is being made
        self.n = 0  # the command behind which the present checkpoint is made
        self._handled_before = 0.0
        self._not_before = -1.0
        self._cost = 0.0
        self._lock = threading.Lock()

    def is_due(self, handled: float, now: float) -> bool:
        """Is a checkpoint worth its while, when handling commands took `handled` seconds in all so far?"""
        return self.is_worth_it(handled, self._worth) and now >= self._not_before

    def is_worth_it(self, handled: float, worth: float) -> bool:
        """Did the commands since the last checkpoint take `worth` seconds, and can one be made at all?"""
        return handled - self._handled_before >= worth and not self._expected and self.problem is None

    def begin(self, n: int, handled: float, halves: int) -> None:
        """A checkpoint behind command `n` is asked for: so many halves will be added."""
        self._halves.clear()
        self.n, self._expected, self._handled_before, self._cost = n, halves, handled, 0.0

    def add(self, name: str, state: Callable[[], Mapping[str, Any]]) -> str | None:
        """Put a half, what `state` answers, by; with the last one the file is written and its name answered.

        What cannot be pickled ends the making of checkpoints: see `problem`. A file that cannot be written, on a full
        disk perhaps, is left to the next one.
        """
        import cloudpickle

        began = self._effort()
        try:
            half = cloudpickle.dumps(dict(state()))
            with self._lock:
                self._halves[name] = half
                self._expected -= 1
                path = self._write() if self._expected == 0 else None
                self._note_cost(self._effort() - began, path is not None)
        except OSError as error:
            _logger.warning("No checkpoint can be written: %s", error)
            self._not_before = self._clock() + max(TRY_AGAIN_S, self._spacing * self._cost)
            return None
        except Exception as error:  # noqa: BLE001 - whatever a plug-in's state makes of being pickled
            self.problem = error
            return None
        return path

    def _note_cost(self, seconds: float, is_last: bool) -> None:
        self._cost += seconds
        if is_last:
            self._not_before = self._clock() + self._spacing * self._cost

    def _write(self) -> str:
        body = pickle.dumps({"n": self.n, "halves": self._halves})
        self._halves = {}
        path = self._folder / f"dispatcher-{self.n}.pkl"
        temporary = path.with_suffix(".part")
        with open(temporary, "wb") as file:
            file.write(_HEAD + _checksum(body) + b"\n")
            file.write(body)
        os.replace(temporary, path)
        return path.name


def read_checkpoint(path: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """The number of the last command that a checkpoint covers, and its halves by queue.

    Raises `CheckpointUnusable` for a file that is damaged, or that holds what this process cannot unpickle.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointUnusable(f"{path} cannot be read: {error.strerror}") from error
    checksum, _, body = data.removeprefix(_HEAD).partition(b"\n")
    if not data.startswith(_HEAD) or checksum != _checksum(body):
        raise CheckpointUnusable(f"{path} is damaged or of another version")
    try:
        content = pickle.loads(body)
        return content["n"], {name: pickle.loads(half) for name, half in content["halves"].items()}
    except Exception as error:
        raise CheckpointUnusable(f"{path} cannot be unpickled here: {error!r}") from error


def _checksum(body: bytes) -> bytes:
    """Tells a file that was cut or has rotted; whoever can write it is trusted anyway."""
    return b"%08x" % zlib.crc32(body)
