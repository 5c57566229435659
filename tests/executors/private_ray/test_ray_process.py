"""What a process does after it has joined a Ray, without one."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from pitchpipe.executors.private_ray.head import take_back_signals

IGNORE = 1  # SIG_IGN of C


@pytest.fixture
def received() -> Iterator[list[int]]:
    """Return the signals that Python's handler of SIGTERM gets; C code has replaced that handler."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = signal.signal(signal.SIGTERM, handle)
    ctypes.CDLL(None).signal(signal.SIGTERM, ctypes.c_void_p(IGNORE))
    yield received
    signal.signal(signal.SIGTERM, before)


def test_handler_of_the_process_is_installed_again(received: list[int]) -> None:
    signal.raise_signal(signal.SIGTERM)
    assert received == []
    take_back_signals()
    signal.raise_signal(signal.SIGTERM)
    assert received == [signal.SIGTERM]


def test_other_threads_leave_the_handler_alone(received: list[int]) -> None:
    thread = threading.Thread(target=take_back_signals)
    thread.start()
    thread.join()  # an exception in it would fail the test
    signal.raise_signal(signal.SIGTERM)
    assert received == []
