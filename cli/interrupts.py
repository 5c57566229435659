"""The effect of SIGINT, SIGTERM and SIGHUP in each phase of a run.

While a verb is imported, `imports.py` handles SIGINT. Then a signal ends the process and its descendants at once: there
is no experiment yet, so nothing needs to be saved. Shortly before the folder of an experiment is made, signals are only
counted, and while its manager runs they are passed to a listener, which stops it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import psutil

from ..trial_agent import shield_forks
from .failures import INTERRUPTED
from .printing import let_output_fail

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOKS = 20
_BETWEEN_LOOKS = 0.05


class Interrupts:
    """Installs its handlers for a `with` block, on the main thread; `count` is the number of signals received."""

    def __init__(self) -> None:
        self.count = 0
        self._notified = 0
        self._listener: Callable[[], object] | None = None
        self._is_held = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if number is signal.SIGHUP and before is signal.SIG_IGN:
                continue  # nohup
            self._before[number] = signal.signal(number, self._on_signal)
        # A child that a user's callback forks would take a signal for one to the experiment, and stay.
        shield_forks(_SIGNALS, lambda handler: handler == self._on_signal)
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def hold(self) -> None:
        """Only count signals from now on, and let stdout fail: an experiment exists, and its end must be recorded."""
        self._is_held = True
        let_output_fail()

    @contextmanager
    def notifying(self, listener: Callable[[], object]) -> Iterator[None]:
        """Call `listener` for each signal while the block runs, and for those only counted before."""
        self._listener = listener
        self._notify()
        try:
            yield
        finally:
            self._listener = None

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self._notify()
        if not self._is_held and self._listener is None:
            kill_descendants()  # the plug-ins are checked in a child process
            os._exit(INTERRUPTED)

    def _notify(self) -> None:
        while self._listener is not None and self._notified < self.count:
            self._notified += 1
            self._listener()


def kill_descendants() -> None:
    """Kill all descendants of this process, also those with sessions of their own: dispatcher, agents and trials.

    Does not wait: the parent of each process collects its exit code.
    """
    # The next pass finds processes forked during this one.
    for _ in range(_LOOKS):
        if not [process for process in psutil.Process().children(recursive=True) if _kill(process)]:
            return
        time.sleep(_BETWEEN_LOOKS)


def _kill(process: psutil.Process) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True
