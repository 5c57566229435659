"""Signals while an experiment runs; what they do to a whole program is in test_experiment.py."""

from __future__ import annotations

import os
import signal

import pytest

from pitchpipe.signals import DeferredSignals


class Enough(Exception):
    """What the program's handler raises."""


def raise_enough(*_: object) -> None:
    raise Enough


def signal_a_child_and_this_process(stops: list[str]) -> None:
    """Send SIGUSR1 in a block: to a forked child, where the handler raises at once, and to this process."""
    with DeferredSignals(stops.append):
        child = os.fork()
        if not child:
            try:
                signal.raise_signal(signal.SIGUSR1)
            except Enough:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert stops == []
        signal.raise_signal(signal.SIGUSR1)


def test_handler_of_the_program_raises_after_the_block_and_at_once_in_a_child() -> None:
    before = signal.signal(signal.SIGUSR1, raise_enough)
    try:
        stops = list[str]()
        with pytest.raises(Enough):
            signal_a_child_and_this_process(stops)
        assert stops == ["interrupted"]
        assert signal.getsignal(signal.SIGUSR1) is raise_enough
    finally:
        signal.signal(signal.SIGUSR1, before)
