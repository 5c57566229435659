"""Ctrl-C at any moment: everything of ours is gone soon, and the experiment can be viewed."""

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pitchpipe.cli.interrupts import Interrupts

from .conftest import Call, Start, until

STUBBORN = """\
trap '' TERM INT
echo "{\\"intermediate\\": 1}" >> "$PITCHPIPE_REPORTS"
touch "$(dirname "$0")/running"
while true; do sleep 0.1; done
"""
# A tuner that takes for ever in the method that the config names; where it has come to is a file.
SLOW_TUNER = """\
import time
from pathlib import Path
from pitchpipe import Tuner


class Slow(Tuner):
    def __init__(self, slow_in):
        self.slow_in = slow_in
        self.may_be_slow("__init__")

    def may_be_slow(self, method):
        if method == self.slow_in:
            Path(__file__).with_name("in-" + method).touch()
            time.sleep(3600)

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id, **kwargs):
        self.may_be_slow("generate_parameters")
        return {"x": 0.5}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""


@pytest.fixture
def stubborn(config: Path) -> Path:
    """Return a config whose trials report once and then ignore SIGTERM."""
    (config.parent / "trial.sh").write_text(STUBBORN)
    return config


@pytest.fixture
def slow_in(config: Path) -> Callable[[str], Path]:
    """Return a function that makes a method of the tuner hang; it returns a file that appears at the call."""

    def make(method: str) -> Path:
        (config.parent / "slow_tuner.py").write_text(SLOW_TUNER)
        tuner = f"{{class_name: slow_tuner.Slow, code_directory: ., class_args: {{slow_in: {method}}}}}"
        config.write_text(config.read_text().replace("{name: Random}", tuner))
        return config.parent / f"in-{method}"

    return make


def test_a_signal_while_trials_run_stops_them_and_keeps_what_they_reported(
    stubborn: Path, directory: Path, start: Start, call: Call
) -> None:
    started = start("run", stubborn, "--json", "--experiment-id", "e")
    until((stubborn.parent / "running").exists)
    until(
        lambda: (
            "1" in call("export", "e").out
            and json.loads(call("export", "e").out)["trials"][0]["intermediate"]
        )
    )
    started.process.send_signal(signal.SIGINT)
    called = started.finish()

    assert called.code == 130
    assert json.loads(called.out)["status"] == "STOPPED"
    assert "stopping" in called.err
    assert started.left() == []
    exported = json.loads(call("export", "e").out)
    assert (exported["experiment"]["status"], exported["experiment"]["reason"]) == ("STOPPED", "interrupted")
    assert {trial["status"] for trial in exported["trials"]} == {"SYS_CANCELED"}
    assert exported["trials"][0]["intermediate"] == [1]


def test_a_second_signal_kills_at_once(stubborn: Path, directory: Path, start: Start) -> None:
    stubborn.write_text(stubborn.read_text().replace("kill_grace: 1s", "kill_grace: 1h"))
    started = start("run", stubborn, "--experiment-id", "e")
    until((stubborn.parent / "running").exists)
    started.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        started.process.wait(1.0)  # the trials have an hour
    started.process.send_signal(signal.SIGINT)
    called = started.finish()

    assert called.code == 130
    assert "STOPPED: experiment e" in called.out
    assert "restoring" not in called.err  # the dispatcher was killed, too, and stays away
    assert "Traceback" not in called.err
    assert started.left() == []


def test_a_signal_during_the_check_of_the_tuner_leaves_nothing(
    config: Path, directory: Path, slow_in: Callable[..., Path], start: Start
) -> None:
    reached = slow_in("__init__")
    started = start("run", config)
    until(reached.exists)
    started.process.send_signal(signal.SIGINT)
    called = started.finish()

    assert (called.code, called.out) == (130, "")
    assert "Traceback" not in called.err
    assert not directory.exists()
    assert started.left() == []


def test_a_signal_while_the_tuner_is_busy_ends_all_the_same(
    config: Path, directory: Path, slow_in: Callable[..., Path], start: Start, call: Call
) -> None:
    reached = slow_in("generate_parameters")
    started = start("run", config, "--experiment-id", "e")
    until(reached.exists)
    started.process.send_signal(signal.SIGINT)
    called = started.finish()

    assert called.code == 130
    assert started.left() == []
    assert json.loads(call("status", "e", "--json").out)["status"] == "STOPPED"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_signal_at_a_random_moment_leaves_no_process_and_a_viewable_experiment(
    seed: int, config: Path, directory: Path, start: Start, call: Call
) -> None:
    config.write_text(config.read_text().replace("max_trial_number: 4", "max_trial_number: 1000000"))
    started = start("run", config, "--json", "--experiment-id", "e")
    try:
        started.process.wait(random.Random(seed).uniform(0.05, 2.0))
    except subprocess.TimeoutExpired:
        started.process.send_signal(signal.SIGINT)
    called = started.finish()

    # Python itself ends by the signal if it comes before there is any code of ours.
    assert called.code in (130, -signal.SIGINT)
    assert started.left() == []
    if not directory.exists():
        return
    exported = json.loads(call("export", "e").out)
    assert exported["experiment"]["status"] == "STOPPED"
    for trial in exported["trials"]:
        assert trial["status"] in ("SUCCEEDED", "SYS_CANCELED")
        assert trial["status"] == "SYS_CANCELED" or trial["intermediate"] == [trial["final"]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_of_a_terminal_stops_the_experiment(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    stopped: list[str] = []
    try:
        with Interrupts() as interrupts:
            interrupts.hold()
            for _ in range(2):  # before the manager runs: kept for it
                signal.raise_signal(number)
            with interrupts.notifying(lambda: stopped.append("stopped")):
                signal.raise_signal(number)
        assert (stopped, interrupts.count) == (["stopped"] * 3, 3)
    finally:
        signal.signal(number, before)


def test_signal_to_a_child_that_a_callback_forked_is_not_one_to_the_experiment() -> None:
    stopped: list[str] = []
    waiting, writing = os.pipe()
    with Interrupts() as interrupts, interrupts.notifying(lambda: stopped.append("stopped")):
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(waiting, 1)  # until the parent ends
            os._exit(3)
        os.kill(child, signal.SIGTERM)
        os.close(writing)
        _, status = os.waitpid(child, 0)
    os.close(waiting)
    assert (os.WIFSIGNALED(status), os.WTERMSIG(status)) == (True, signal.SIGTERM)
    assert (stopped, interrupts.count) == ([], 0)
