"""How a dispatcher saves itself: workers save their halves, the manager is notified, a new process restores them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from ..protocol import CommandType, dumps
from .channel import Channel
from .saving import Saver
from .workers import Worker

WORTH_AT_END_S = 0.1
_HANDLED_S = attrgetter("handled_s")
_ROLES = {"default": "tuner", "assessor": "assessor"}
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
        state_of: Callable[[str], Mapping[str, Any]],
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
        return sum(map(_HANDLED_S, self._workers))  # for every command

    def _save_half(self, worker: Worker) -> None:
        saver = self._saver
        if saver.problem is not None:
            return
        self._notify(queue=worker.name, n=saver.n)
        path = saver.add(worker.name, lambda: self._state_of(worker.name))
        if path is not None:
            self._notify(path=path, n=saver.n)
        elif saver.problem is not None:
            role = _ROLES[worker.name]
            _log.warning(
                "The %s cannot be saved (%r): after a restart it receives all commands again",
                role,
                saver.problem,
            )
        self._channel.flush()

    def _notify(self, **payload: Any) -> None:
        self._channel.send(CommandType.Checkpoint, dumps(payload))
