"""Children that users' code forks from this process: a signal to one, or its end, is its own."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..sdk import TrialStopped


def shield_forks(
    numbers: Sequence[signal.Signals],
    is_own: Callable[[object], bool],
    close: Callable[[], None] = lambda: None,
) -> None:
    """Give each child that is forked from now on the default handlers of these signals, where this process has its own.

    They are blocked during the fork: one that came before the child has its handlers would reach this process by the
    wakeup descriptor. `is_own` tells our handlers from a user's; `close` closes in the child what must not stay open.
    """
    before = threading.local()

    def block() -> None:
        before.mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def restore() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before.mask)

    def reset() -> None:
        signal.set_wakeup_fd(-1)
        for number in numbers:
            if is_own(signal.getsignal(number)):
                is_interrupt = number is signal.SIGINT
                signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
        close()
        restore()

    os.register_at_fork(before=block, after_in_parent=restore, after_in_child=reset)


class ending_forks:  # a class costs each function trial less than a generator
    """A block of users' code: a child that it forked, and that leaves the block too, ends there."""

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(self, kind: object, error: BaseException | None, frames: object) -> None:
        if os.getpid() != self._pid:
            code = 1
            try:
                code = _code_of(error)
            finally:  # a signal may interrupt what it prints; it would continue as a second agent
                os._exit(code)


def _code_of(error: BaseException | None) -> int:
    """Print what this process has to say, and return the exit code that a program of its own would have."""
    code: object = 0
    if isinstance(error, SystemExit):
        code = error.code or 0
    elif error is not None and not isinstance(error, TrialStopped):
        traceback.print_exception(error)
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed or full: the child ends anyway
            stream.flush()
    return code & 0xFF
