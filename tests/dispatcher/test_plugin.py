"""Calls of a plug-in's methods, and the processes that these fork."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable

import pytest

from pitchpipe.dispatcher.plugin import Plugin


class Interrupting(io.StringIO):
    """Gets Ctrl-C while it prints."""

    def write(self, text: str) -> int:
        raise KeyboardInterrupt


def interrupted() -> None:
    sys.stderr = Interrupting()
    raise ValueError


@pytest.mark.parametrize(
    ("leave", "code"),
    [
        (lambda: None, 0),
        (lambda: sys.exit(0), 0),
        (lambda: sys.exit(7), 7),
        (lambda: sys.exit("a text"), 1),
        (lambda: 1 // 0, 1),
        (interrupted, 1),
    ],
    ids=["return", "exit", "exit 7", "exit with a text", "raise", "interrupted"],
)
def test_forked_child_that_leaves_a_method_ends_there(leave: Callable[[], object], code: int) -> None:
    class Forking:
        def generate(self) -> int:
            child = os.fork()
            if child == 0:
                leave()
                return 0
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    test = os.getpid()
    found = Plugin("tuner", Forking()).call("generate")
    if os.getpid() != test:
        os._exit(77)  # it went on: without this, the rest of the suite would run twice
    assert found == code
