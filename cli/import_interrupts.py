"""Imports that Ctrl-C cannot disturb.

During an import Python also calls functions whose exceptions it prints and drops. A KeyboardInterrupt can be lost
there, or leave the import lock held.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Let SIGINT end the process at once with exit code 130, without KeyboardInterrupt, while the block runs.

    Changes nothing if SIGINT is ignored or has another handler, or on another thread than the main one.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_default or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)
