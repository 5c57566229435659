"""Calls of a plug-in's methods, and the processes that these fork."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.dispatcher.plugin import Plugin
from pitchpipe.tuners import Tuner


class Interrupting(io.StringIO):
    """Gets Ctrl-C while it prints."""

    def write(self, text: str) -> int:
        raise KeyboardInterrupt


def interrupted() -> None:
    sys.stderr = Interrupting()
    raise ValueError


class First(Tuner):
    """Has the methods of NNI's first versions."""

    def generate_parameters(self, parameter_id):
        return {"x": parameter_id}

    def receive_trial_result(self, parameter_id, parameters, value):
        return [parameter_id, parameters, value]

    def trial_end(self, parameter_id, success):
        return success


class Second(First):
    """Takes one of the options."""

    def generate_parameters(self, parameter_id, *, st_callback=None):
        return {"x": st_callback}

    def receive_trial_result(self, parameter_id, parameters, value, trial_job_id):
        return [parameter_id, parameters, value, trial_job_id]


class Third(First):
    """Takes any."""

    def generate_parameters(self, parameter_id, **kwargs):
        return kwargs

    def receive_trial_result(self, *arguments, **options):
        return [*arguments, options]


def test_method_gets_the_options_that_it_takes() -> None:
    results: list[Any] = []
    for tuner in (First(), Second(), Third()):
        plugin = Plugin("tuner", tuner)
        made = plugin.call("generate_multiple_parameters", [7], st_callback="a")
        learnt = plugin.call("receive_trial_result", 7, {}, 1.0, customized=False, trial_job_id="t")
        results.append((made, learnt[3:], plugin.call("trial_end", 7, True)))
    options = {"customized": False, "trial_job_id": "t"}
    assert results == [
        ([{"x": 7}], [], True),
        ([{"x": "a"}], ["t"], True),
        ([{"st_callback": "a"}], [options], True),
    ]


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
