"""How a dispatcher saves itself: workers save their halves, the manager is notified, a new process restores them.

Both workers save their halves after the same command; the later one writes the file. A file has a line that
identifies it, a line with the checksum of the rest, a line with the code that it needs (JSON), and the rest, pickled.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..protocol import CheckpointMessage, CommandType, dumps
from .channel import Channel
from .workers import Worker

if TYPE_CHECKING:
    from .origin import Origin

WORTH_AT_END_S = 0.1
# How long to wait after a checkpoint that could not be written.
_TRY_AGAIN_S = 10.0
_ROLES = {"default": "tuner", "assessor": "assessor"}
_KIND = b"pitchpipe dispatcher checkpoint "
# The number is that of the layout: of these files, and of what the dispatcher keeps besides the plug-ins.
_HEAD = _KIND + b"3\n"
_log = logging.getLogger(__name__)


class Checkpointing:
    """Makes the checkpoints of one dispatcher; `state_of(queue)` is called on the worker of that queue.

    For each half the manager receives a Checkpoint frame with the queue, in order with the queue's other frames, and
    after both halves one with the path. So it knows which replies a checkpoint covers.
    """

    def __init__(
        self,
        saver: Saver,
        workers: Sequence[Worker],
        channel: Channel,
        state_of: Callable[[str], Mapping[str, object]],
    ) -> None:
        self._saver, self._workers, self._channel, self._state_of = saver, workers, channel, state_of

    def save_if_due(self, n: int, now: float) -> None:
        """If a checkpoint is due, have each worker save its half after command `n`, the last one received."""
        if self._saver.is_due(self._handled_s(), now):
            self._saver.begin(n, self._handled_s(), len(self._workers))
            for worker in self._workers:
                worker.put_task(self._save_half)

    def save_at_end(self, n: int) -> None:
        """Save the final state if that is worth it; the workers have ended."""
        if self._saver.is_worth_it(self._handled_s(), WORTH_AT_END_S):
            self._saver.begin(n, self._handled_s(), len(self._workers))
            for worker in self._workers:
                self._save_half(worker)

    def _handled_s(self) -> float:
        return sum([worker.handled_s for worker in self._workers])  # for every command

    def _save_half(self, worker: Worker) -> None:
        saver = self._saver
        if saver.problem is not None:
            return
        self._notify(CheckpointMessage(queue=worker.name, n=saver.n))
        path = saver.add(worker.name, lambda: self._state_of(worker.name))
        if path is not None:
            self._notify(CheckpointMessage(path=path, n=saver.n))
        elif saver.problem is not None:
            _log.warning(
                "The %s cannot be saved (%r): after a restart it receives all commands again",
                _ROLES[worker.name],
                saver.problem,
            )
        self._channel.flush()

    def _notify(self, message: CheckpointMessage) -> None:
        self._channel.send(CommandType.Checkpoint, dumps(message))


class Checkpointed:
    """An object of which checkpoints keep the attributes `KEPT`."""

    KEPT: ClassVar[tuple[str, ...]]

    def state(self) -> Mapping[str, object]:
        """Return what must be saved."""
        return {name: getattr(self, name) for name in self.KEPT}

    def take_state(self, state: Mapping[str, object]) -> None:
        """Restore what `state` returned."""
        for name in self.KEPT:
            setattr(self, name, state[name])


class CheckpointUnusable(Exception):
    """A checkpoint cannot be restored; the message names the file, and `why` says what is wrong with it."""

    def __init__(self, path: Path, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path} {why}")


class Saver:
    """Writes checkpoints into `folder`, and forces them to the disk if `synced`.

    A checkpoint is due when the commands since the last one took `worth` seconds, and `spacing` times the duration of
    the last one has passed. So checkpoints cost at most 2 % of the time.
    """

    def __init__(
        self,
        folder: Path,
        worth: float = 1.0,
        spacing: float = 50.0,
        clock: Callable[[], float] = time.monotonic,
        effort: Callable[[], float] = time.thread_time,  # on a busy machine, waiting costs nothing
        *,
        synced: bool = False,
    ) -> None:
        self.problem: BaseException | None = None
        self._folder = folder
        self._synced = synced
        self._worth, self._spacing, self._clock, self._effort = worth, spacing, clock, effort
        self._halves: dict[str, bytes] = {}
        self._began = time.time()
        self._origin: Origin | None = None  # made with the first checkpoint
        self._needed: set[str] = set()  # modules
        self._expected = 0  # halves still missing; 0: no checkpoint is in progress
        self.n = 0  # the last command that the current checkpoint covers
        self._handled_before = 0.0
        self._not_before = -1.0
        self._cost = 0.0
        self._lock = threading.Lock()

    def is_due(self, handled: float, now: float) -> bool:
        """Return whether a checkpoint is worth its cost after `handled` seconds of handling commands in all."""
        return self.is_worth_it(handled, self._worth) and now >= self._not_before

    def is_worth_it(self, handled: float, worth: float) -> bool:
        """Return whether the commands since the last checkpoint took `worth` seconds, and one can be made."""
        return handled - self._handled_before >= worth and not self._expected and self.problem is None

    def begin(self, n: int, handled: float, halves: int) -> None:
        """Begin a checkpoint after command `n`, which `halves` halves complete."""
        self._halves.clear()
        self._needed.clear()
        self.n, self._expected, self._handled_before, self._cost = n, halves, handled, 0.0

    def add(self, name: str, state: Callable[[], Mapping[str, object]]) -> str | None:
        """Add a half, which `state` returns; with the last one, write the file and return its name.

        A half that cannot be pickled ends all checkpoints: see `problem`. If the file cannot be written, perhaps
        because the disk is full, the next checkpoint tries again.
        """
        from .origin import pickle_of  # cloudpickle takes its time to import

        began = self._effort()
        try:
            half, modules = pickle_of(dict(state()))
            with self._lock:
                self._halves[name] = half
                self._needed |= modules
                self._expected -= 1
                path = self._write() if self._expected == 0 else None
                self._cost += self._effort() - began
                if path is not None:
                    self._not_before = self._clock() + self._spacing * self._cost
        except OSError as error:
            _log.warning("No checkpoint can be written: %s", error)
            self._not_before = self._clock() + max(_TRY_AGAIN_S, self._spacing * self._cost)
            return None
        except Exception as error:  # noqa: BLE001 - pickling a plug-in's state may raise anything
            self.problem = error
            return None
        return path

    def _write(self) -> str:
        from .origin import Origin

        self._origin = self._origin or Origin(self._began)
        needed = json.dumps(self._origin.of(sorted(self._needed))).encode()
        body = needed + b"\n" + pickle.dumps({"n": self.n, "halves": self._halves})
        self._halves = {}
        path = self._folder / f"dispatcher-{self.n}.pkl"
        temporary = path.with_suffix(".part")
        temporary.write_bytes(_HEAD + _checksum(body) + b"\n" + body)
        if self._synced:
            _sync(temporary)
        os.replace(temporary, path)
        if self._synced:
            _sync(self._folder)
        return path.name


def read_checkpoint(path: Path) -> tuple[int, Mapping[str, Mapping[str, object]]]:
    """Return the number of the last command that a checkpoint covers, and its halves by queue.

    Raise `CheckpointUnusable` for a file that is damaged, that other code wrote, or that cannot be unpickled.
    """
    from .origin import misfit

    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointUnusable(path, f"cannot be read: {error.strerror}") from error
    checksum, _, body = data.removeprefix(_HEAD).partition(b"\n")
    if data.startswith(_KIND) and not data.startswith(_HEAD):
        raise CheckpointUnusable(path, "was written by another version of Pitchpipe")
    if not data.startswith(_HEAD) or checksum != _checksum(body):
        raise CheckpointUnusable(path, "is damaged")
    needed, _, pickled = body.partition(b"\n")
    if why := misfit(json.loads(needed)):
        raise CheckpointUnusable(path, why)
    try:
        content = pickle.loads(pickled)
        return content["n"], {name: pickle.loads(half) for name, half in content["halves"].items()}
    except Exception as error:
        raise CheckpointUnusable(path, f"cannot be unpickled here: {error!r}") from error


def _sync(path: Path) -> None:
    """Force a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum(body: bytes) -> bytes:
    """Return the checksum that reveals a truncated or corrupted file; those who can write it are trusted."""
    return b"%08x" % zlib.crc32(body)
