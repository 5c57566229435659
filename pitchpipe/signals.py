"""Signals that would end a program while its experiment runs: the experiment ends properly first."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from functools import cache, partial
from types import FrameType
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ALL = tuple(signal.Signals)


class DeferredSignals:
    """A block on the main thread in which a signal that would end the program calls `stop`, and acts only afterwards.

    It then has its default action, or raises the exception of the program's own handler. A second signal of the same
    kind acts at once. SIGINT is not left to an event loop, which cannot act while the block keeps it waiting.
    `is_interrupted` says that a signal stands for Python's KeyboardInterrupt, which the caller has to raise.
    """

    def __init__(self, stop: Callable[[str], None]) -> None:
        self.is_interrupted = False
        self._stop = stop
        self._pid = os.getpid()
        self._before: dict[int, Any] = {}
        self._handlers: dict[int, Any] = {}
        self._endings: list[Callable[[], None]] = []

    def __enter__(self) -> DeferredSignals:
        if threading.current_thread() is threading.main_thread():
            for number in _ALL:
                handler = signal.getsignal(number)
                if callable(handler) or (handler == signal.SIG_DFL and number in _ENDING):
                    self._before[number] = self._handlers[number] = handler
                    signal.signal(number, self._on_signal)
            if signal.SIGINT in self._handlers and is_in_event_loop():
                self._handlers[signal.SIGINT] = signal.default_int_handler
            _shield_forks()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for end in self._endings:
            end()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        handler = self._handlers[number]
        if os.getpid() != self._pid:  # a child that a callback forked has the handlers of the program
            handler(number, frame)
            return
        if handler is signal.default_int_handler:
            self.is_interrupted = True
        elif handler == signal.SIG_DFL:
            self._endings.append(partial(signal.raise_signal, number))
        else:
            try:
                handler(number, frame)
                return
            except BaseException as error:  # noqa: BLE001 (SystemExit, usually)
                self._endings.append(partial(_raise, error))
        signal.signal(number, handler)
        self._stop("interrupted")


def _raise(error: BaseException) -> None:
    raise error


def is_in_event_loop() -> bool:
    """Return whether the caller runs in an event loop, as the cells of a notebook do."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@cache
def _shield_forks() -> None:
    """Keep signals to children that callbacks fork from stopping the child's copy of the experiment."""
    from .trial_agent import shield_forks

    def is_own(handler: object) -> bool:
        return isinstance(getattr(handler, "__self__", None), DeferredSignals)

    shield_forks(_ENDING, is_own)
