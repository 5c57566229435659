"""Signals that would end a program while its experiment runs: the experiment ends in order first."""

# The sub-packages lie beside this folder until the package is built, where type checkers do not see them.
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Mapping
from functools import cache
from types import FrameType
from typing import Any

__all__ = ["DeferredSignals", "is_in_event_loop"]

_ENDING: Mapping[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""What each of them does unless the program says otherwise."""


class DeferredSignals:
    """A block on the main thread in which the first of each signal calls `stop`, and ends the program after the block.

    A signal that the program handles or ignores is left to it; SIGINT is not left to an event loop, which cannot act
    while the block keeps it waiting. `received` has the signals; SIGINT is for the caller to raise.
    """

    def __init__(self, stop: Callable[[str], None]) -> None:
        self.received: list[int] = []
        self._stop = stop
        self._before: dict[int, Any] = {}

    def __enter__(self) -> DeferredSignals:
        if threading.current_thread() is threading.main_thread():
            for number, usual in _ENDING.items():
                if signal.getsignal(number) == usual or (number == signal.SIGINT and is_in_event_loop()):
                    self._before[number] = signal.signal(number, self._on_signal)
            _shield_forks()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for number in self.received:
            if number != signal.SIGINT:
                signal.raise_signal(number)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, _ENDING[number])  # the second one acts at once
        self.received.append(number)
        self._stop("interrupted")


def is_in_event_loop() -> bool:
    """Return whether the caller runs in an event loop, as the cells of a notebook do."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@cache
def _shield_forks() -> None:
    """Once in a process: a signal to a child that a callback forks would stop the child's copy of the experiment."""
    from .trial_agent import shield_forks

    def is_own(handler: object) -> bool:
        return isinstance(getattr(handler, "__self__", None), DeferredSignals)

    shield_forks(tuple(map(signal.Signals, _ENDING)), is_own)
