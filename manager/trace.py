"""`pitchpipe run --trace FILE`: where the time of an experiment goes, in the trace format of Chrome and Perfetto."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from ..protocol import CommandType, Json, JsonObject
from ..runner import (
    AttemptEnded,
    AttemptOrder,
    AttemptStarted,
    Effect,
    Event,
    NoMoreParameters,
    ParametersArrived,
    SendCommand,
    StartTrial,
)
from ..store import StoreTick
from .turn import Turn, TurnLoop

_log = logging.getLogger(__name__)

_MANAGER, _DISPATCHER, _TRIALS = range(3)
_ROWS = {_MANAGER: "manager", _DISPATCHER: "dispatcher", _TRIALS: "trials"}


class Trace:
    """Writes spans to a file, in the order in which they end; raises OSError if it cannot be made.

    Times are seconds since the epoch; in the file they count from the first span. If the manager is killed, the closing
    bracket is missing, which viewers accept. A file that can no longer be written is logged once and left as
    it is.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._separator = "[\n"
        self._zero: float | None = None
        for row, name in _ROWS.items():
            self._write({"ph": "M", "name": "process_name", "pid": row, "args": {"name": name}})

    def add(self, name: str, row: int, began: float, ended: float, *, line: int = 0, **details: Json) -> None:
        """Add a span to a line of a row."""
        zero = self._zero = began if self._zero is None else self._zero
        first, last = (round((time - zero) * 1e6) for time in (began, max(began, ended)))
        place = {"ph": "X", "name": name, "pid": row, "tid": line}
        self._write({**place, "ts": first, "dur": last - first, "args": details})

    def close(self) -> None:
        """Complete the file."""
        self._append("\n]\n")
        self._file.close()

    def _write(self, row: JsonObject) -> None:
        self._append(self._separator + json.dumps(row))
        self._separator = ",\n"

    def _append(self, text: str) -> None:
        if self._file.closed:
            return
        try:
            self._file.write(text.encode())
        except OSError as error:
            _log.error("the trace is not continued: %s", error)
            self._file.close()


class TracedTurnLoop(TurnLoop):
    """A loop that traces its turns, the requests to the tuner, and the attempts of trials by slot."""

    def __init__(self, trace: Trace, *args: Any) -> None:
        super().__init__(*args)
        self._trace = trace
        self._turns = count()
        self._asked: deque[float] = deque()  # when the parameters that have not come yet were asked for
        self._orders: dict[tuple[str, int], tuple[AttemptOrder, float]] = {}

    def turn(self) -> None:
        """Take a turn, and trace it."""
        with self._span("turn", number=next(self._turns)):
            super().turn()

    def close(self) -> None:
        """Take no more turns; the trace is complete."""
        super().close()
        self._trace.close()

    def _handle(self, events: Sequence[Event]) -> tuple[list[SendCommand], list[Effect]]:
        for event in events:
            self._note(event)
        with self._span("decide", events=len(events)):
            return super()._handle(events)

    def _write(self, tick: StoreTick) -> None:
        with self._span("commit"):
            super()._write(tick)

    def _act(self, turn: Turn) -> None:
        now = self._clock()
        for effect in turn.effects:
            if isinstance(effect, StartTrial):
                self._orders[effect.order.trial_id, effect.order.attempt] = effect.order, now
        for command in turn.commands:
            if command.type is CommandType.RequestTrialJobs:
                self._asked.extend([now] * int(command.payload))
        with self._span("act", effects=len(turn.effects), commands=len(turn.commands)):
            super()._act(turn)

    def _note(self, event: Event) -> None:
        if isinstance(event, ParametersArrived | NoMoreParameters) and self._asked:
            self._trace.add("suggestion", _DISPATCHER, self._asked.popleft(), self._clock())
        elif isinstance(event, AttemptStarted) and (order := self._order(event)):
            self._trace.add("start", _TRIALS, order[1], event.time, line=order[0].slot)
            self._orders[event.trial_id, event.attempt] = order[0], event.time
        elif isinstance(event, AttemptEnded) and (order := self._order(event)):
            name = f"trial {order[0].sequence_id}"
            details = {"id": event.trial_id, "attempt": event.attempt}
            self._trace.add(name, _TRIALS, order[1], event.time, line=order[0].slot, **details)
            del self._orders[event.trial_id, event.attempt]

    def _order(self, event: AttemptStarted | AttemptEnded) -> tuple[AttemptOrder, float] | None:
        return self._orders.get((event.trial_id, event.attempt))

    @contextmanager
    def _span(self, name: str, **details: Json) -> Iterator[None]:
        began = self._clock()
        try:
            yield
        finally:
            self._trace.add(name, _MANAGER, began, self._clock(), **details)
