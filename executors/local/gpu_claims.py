"""Which experiment holds which GPU: a small locked file, shared by all local experiments of a user.

Each experiment counts its own trials in its ledger; this file only keeps experiments off each other's GPUs. A claim
outlives its manager as long as one of the experiment's agents lives, because its trials continue.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

from filelock import FileLock

from ...sdk import is_of_machine
from ...trial_agent import FileWatch, best_watch
from ..tasks import Tasks

_log = logging.getLogger(__name__)

# How often (s) to look for claims of experiments that were killed: such a claim stays in the file.
_LOOK_EVERY = 5.0


class _Claim(NamedTuple):
    device: int | str  # the UUID of the card; its index where nothing is known about it
    folder: str
    sockets: str
    trial: str


class GpuClaims:
    """The claims of one experiment among those of all.

    Cards are claimed by their UUID, `cards` has those of this experiment by index: in another container or Slurm job,
    the same index can be another card. `sockets` is the directory of the experiment's agent sockets;
    `has_manager(folder)` returns whether an experiment is running.
    """

    def __init__(
        self,
        directory: Path,
        folder: Path,
        sockets: Path,
        has_manager: Callable[[Path], bool],
        cards: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self.path = directory / "gpu-claims.json"
        self._lock = FileLock(directory / "gpu-claims.lock")
        self._folder = str(folder)
        self._sockets = str(sockets)
        self._has_manager = has_manager
        self._cards = cards
        self._indices = {uuid: index for index, uuid in cards.items()}

    def take(self, trial: str, devices: tuple[int, ...]) -> tuple[int, ...]:
        """Claim devices for a trial; return those that another experiment holds (then none is claimed)."""
        with self._edit() as claims:
            busy = self._busy(claims)
            taken = tuple(sorted(busy.intersection(devices)))
            if not taken:
                mine = [
                    _Claim(self._cards.get(device, device), self._folder, self._sockets, trial)
                    for device in devices
                ]
                claims.extend(claim for claim in mine if claim not in claims)
            return taken

    def give_back(self, trial: str) -> None:
        """Give up the devices of a trial."""
        with self._edit() as claims:
            claims[:] = [claim for claim in claims if (claim.folder, claim.trial) != (self._folder, trial)]

    def busy(self) -> frozenset[int]:
        """Return the devices that other experiments hold now."""
        with self._edit() as claims:
            return self._busy(claims)

    def _busy(self, claims: list[_Claim]) -> frozenset[int]:
        others = [claim.device for claim in claims if claim.folder != self._folder]
        indices = [device if isinstance(device, int) else self._indices.get(device) for device in others]
        return frozenset(index for index in indices if index is not None)

    @contextmanager
    def _edit(self) -> Iterator[list[_Claim]]:
        """Yield the live claims and write changes back, in place: the file is being watched."""
        with self._lock, self.path.open("a+", encoding="utf-8") as file:
            before = _read(file)
            claims = [claim for claim in before if self._is_alive(claim)]
            yield claims
            if claims != before:
                _write(file, claims)

    def _is_alive(self, claim: _Claim) -> bool:
        if claim.folder == self._folder or self._has_manager(Path(claim.folder)):
            return True
        return any(is_listened_to(path) for path in Path(claim.sockets).glob("*.sock"))


class GpuWatch:
    """Watches what other experiments of this machine claim, and reports changes."""

    def __init__(self, claims: GpuClaims, on_change: Callable[[frozenset[int]], None], tasks: Tasks) -> None:
        self.claims = claims
        self._on_change = on_change
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._busy: frozenset[int] = frozenset()
        self._timer: asyncio.TimerHandle | None = None
        claims.busy()  # creates the file
        self._watch: FileWatch = best_watch()
        self._watch.watch(str(claims.path))
        if self._watch.descriptor is not None:
            self._loop.add_reader(self._watch.descriptor, self._on_written)

    def look(self) -> frozenset[int]:
        """Return what others hold now; look again regularly while they do, because they may be killed."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            busy, is_known = self.claims.busy(), True
        except OSError as error:  # too many open files, perhaps
            _log.warning("what other experiments claim cannot be read now: %s", error)
            busy, is_known = self._busy, False
        if busy != self._busy:
            self._busy = busy
            self._tasks.soon(self._on_change, busy)
        if busy or self._watch.descriptor is None or not is_known:
            self._timer = self._tasks.later(_LOOK_EVERY, self.look)
        return busy

    def close(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watch.descriptor is not None:
            self._loop.remove_reader(self._watch.descriptor)
        self._watch.close()

    def _on_written(self) -> None:
        self._watch.clear()
        self.look()


def _read(file: IO[str]) -> list[_Claim]:
    file.seek(0)
    text = file.read()
    try:
        return [_Claim(*row) for row in json.loads(text or "[]")]
    except (ValueError, TypeError):
        _log.warning("%s is damaged and starts empty: %r", file.name, text[:200])
        return []


def _write(file: IO[str], claims: list[_Claim]) -> None:
    file.seek(0)
    file.truncate()
    file.write(json.dumps(claims))
    file.flush()


def is_listened_to(path: Path) -> bool:
    """Return whether a live process listens on this socket; raise `OSError` if the machine cannot tell now."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True  # it has not accepted the connections before this one
        except OSError as error:
            if is_of_machine(error):
                raise
            return False
    return True
