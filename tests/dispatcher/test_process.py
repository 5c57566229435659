"""The dispatcher process: its pipes, its log, its signals, its exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.protocol import CommandType

from .conftest import encode_exp_params

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
RANDOM = {"tuner": {"name": "Random"}, "seed": 1}

# A tuner that does as its parameters' name says, and notes how it ended.
PLUGIN = """
import os, pathlib, signal, subprocess, sys, time
from pitchpipe.tuners import Tuner

class Odd(Tuner):
    def __init__(self, what=""):
        self.what = what
        print("made", flush=False)
    def update_search_space(self, space):
        print("space", "x" * 100_000)
        subprocess.run(["echo", "from a child"])
    def generate_parameters(self, parameter_id, **kwargs):
        if self.what == "raise":
            raise RuntimeError("on purpose")
        if self.what == "hang":
            open("hanging", "w").close()  # a named pipe: waits for its reader
            time.sleep(600)
        return {"x": parameter_id}
    def receive_trial_result(self, *args, **kwargs):
        pass
    def load_checkpoint(self):
        pathlib.Path("loaded").touch()
    def _on_exit(self):
        pathlib.Path("exited").touch()
    def _on_error(self):
        pathlib.Path("failed").touch()
"""


@pytest.fixture
def odd(plugin_file: Callable[..., dict[str, str]]) -> Callable[[str], dict[str, Any]]:
    """Return a function that gives the configuration of an Odd tuner."""
    config = plugin_file("odd.Odd", PLUGIN)
    return lambda what="": {"tuner": {**config, "classArgs": {"what": what}}}


def marks(folder: Path) -> set[str]:
    return {name for name in ("loaded", "exited", "failed") if (folder / name).exists()}


def test_experiment_is_served_with_its_seed_and_constraints_by_one_thread_or_a_pool(spawn):
    config = {**RANDOM, "assessor": {"name": "Medianstop"}, "constraints": ["a < b"]}
    answers = []
    for pool in (False, True):
        one = spawn(
            {**config, "objectives": [{"direction": "minimize"}], "deprecated": {"multiThread": pool}}
        )
        assert one.initialize(dict.fromkeys("ab", SPACE["x"]))["periodical_queues"] == ["assessor"]
        answers.append(one.request(20))
        one.final(0, 0.5)
        assert one.terminate() == 0
    assert answers[0] == answers[1]
    assert [record["parameter_id"] for record in answers[0]] == list(range(20))
    assert all(record["parameters"]["a"] < record["parameters"]["b"] for record in answers[0])


def test_end_of_the_stream_ends_it_with_0(serve, odd):
    one = serve(odd())
    one.hang_up()
    assert one.joined() == 0
    assert marks(one.folder) == {"exited"}


def test_end_inside_a_frame_is_the_end_of_the_stream(serve):
    one = serve(RANDOM)
    one.send_bytes(b"GE0000")
    one.hang_up()
    assert one.joined() == 0


def test_manager_that_no_longer_reads_ends_it_with_0(serve, odd):
    one = serve(odd())
    reading = one.in_fd
    one.in_fd = os.open(os.devnull, os.O_RDONLY)
    os.close(reading)
    one.send(CommandType.RequestTrialJobs, 1)
    assert one.joined() == 0


def test_garbage_ends_it_with_1_after_the_good_commands(serve):
    one = serve(RANDOM)
    one.send_bytes(b"PI00000000000000" + b"this is not a frame")
    one.expect(CommandType.Ping)
    report = one.expect(CommandType.Error)
    assert (report["plugin"], report["type"]) == ("dispatcher", "BadHeader")
    assert one.joined() == 1


def test_tuner_that_raises_ends_it_with_1_and_a_report(serve, odd):
    one = serve(odd("raise"))
    one.send(CommandType.RequestTrialJobs, 1)
    report = one.expect(CommandType.Error)
    assert (report["plugin"], report["message"]) == ("tuner", "on purpose")
    assert re.fullmatch(r"odd\.py:\d+ in generate_parameters", report["where"])
    assert one.joined() == 1
    assert marks(one.folder) == {"failed"}


def test_tuner_that_raises_under_another_manager_is_in_the_log(serve, odd):
    one = serve(odd("raise"), peer=False, NNI_LOG_DIRECTORY=".")
    one.send(CommandType.RequestTrialJobs, 1)
    assert one.joined() == 1
    assert one.rest() == []
    assert "RuntimeError: on purpose" in (one.folder / "dispatcher.log").read_text()


def hanging(serve: Callable[..., Any], odd: Callable[[str], dict[str, Any]], **options: Any) -> Any:
    """Return a dispatcher whose tuner is inside generate_parameters, and stays there."""
    one = serve({**odd("hang"), **options})
    os.mkfifo(one.folder / "hanging")
    one.send(CommandType.RequestTrialJobs, 1)
    (one.folder / "hanging").read_bytes()
    return one


def test_tuner_that_hangs_is_abandoned_and_the_exit_is_0(serve, odd):
    one = hanging(serve, odd)
    assert one.terminate() == 0
    assert marks(one.folder) == set()  # nothing is called while the worker is inside


@pytest.mark.parametrize("pool", [False, True])
def test_tuner_that_hangs_does_not_outlive_the_manager(serve, odd, pool):
    one = hanging(serve, odd, deprecated={"multiThread": pool})
    one.hang_up()
    assert one.process.wait(3) == 0


def test_interrupt_from_the_terminal_is_the_managers_to_handle(serve, odd):
    one = serve(odd())
    os.killpg(one.process.pid, signal.SIGINT)
    assert len(one.request(2)) == 2
    assert one.terminate() == 0
    assert marks(one.folder) == {"exited"}


@pytest.mark.parametrize("log", ["", "."])
def test_prints_of_plug_ins_do_not_get_into_the_pipe(serve, odd, log):
    one = serve(odd(), NNI_LOG_DIRECTORY=log)
    assert len(one.request(2)) == 2
    assert one.terminate() == 0
    text = (one.folder / "dispatcher.log").read_text() if log else one.output()
    assert "space xxx" in text
    assert "from a child" in text
    if log:
        assert one.output() == ""


def test_prints_to_a_closed_output_are_survived(serve, odd):
    command = [sys.executable, "-m", "pitchpipe.dispatcher", "--exp_params", encode_exp_params(odd())]
    shell = ["/bin/sh", "-c", 'exec "$0" "$@" 1>&- 2>&-', *command]
    one = serve({}, command=shell, NNI_LOG_DIRECTORY=".")
    assert one.terminate() == 0


def test_log_lines_have_the_known_form_and_those_of_an_earlier_run_are_kept(serve):
    for _ in range(2):
        one = serve(RANDOM, NNI_LOG_DIRECTORY=".", NNI_LOG_LEVEL="info")
        one.final(99, 0.5)
        assert one.terminate() == 0
    text = (one.folder / "dispatcher.log").read_text()
    form = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] (INFO|WARNING) \([\w.]+/[\w-]+\) .+"
    assert all(re.fullmatch(form, line) for line in text.splitlines())
    warning = "WARNING (pitchpipe.dispatcher.suggesting/default-worker) No parameters with id 99"
    assert (text.count(warning), text.count("Dispatcher ends")) == (2, 2)


def test_children_of_plug_ins_do_not_hold_the_pipe(serve, plugin_file):
    parent = """
import subprocess
from pitchpipe.tuners import Tuner
class Parent(Tuner):
    def update_search_space(self, space):
        self.child = subprocess.Popen(["sleep", "600"], close_fds=False)
    def generate_parameters(self, parameter_id, **kwargs):
        return {"pid": self.child.pid}
"""
    one = serve({"tuner": plugin_file("parent.Parent", parent)})
    child = one.request()[0]["parameters"]["pid"]
    try:
        one.send(CommandType.Terminate)
        (frame,) = one.rest()  # ends although the child lives
        assert frame.command is CommandType.Processed
        assert one.joined() == 0
    finally:
        os.kill(child, signal.SIGKILL)


def test_unloadable_tuner_is_reported(spawn):
    one = spawn({"tuner": {"name": "Nonesuch"}})
    report = one.expect(CommandType.Error)
    assert report["plugin"] == "tuner"
    assert "Nonesuch" in report["message"]
    assert one.joined() == 1


def test_plug_ins_load_their_own_checkpoints_unless_commands_are_replayed(serve, odd):
    for peer, expected in ((True, set()), (False, {"loaded"})):
        one = serve(odd(), peer=peer, NNI_MODE="resume")
        assert marks(one.folder) == expected
        one.terminate()
        (one.folder / "exited").unlink()


def test_advisor_is_the_dispatcher(spawn, plugin_file):
    advisor = """
from pitchpipe.dispatcher import MsgDispatcherBase
from pitchpipe.protocol import CommandType
class Advisor(MsgDispatcherBase):
    def __init__(self, size=1):
        super().__init__()
        self.size = size
    def handle_initialize(self, data):
        self.send(CommandType.Initialized, "")
    def handle_request_trial_jobs(self, count):
        for _ in range(count):
            self.send(CommandType.NewTrialJob, '{"parameter_id": "0_%d"}' % self.size)
"""
    config = {**plugin_file("adv.Advisor", advisor), "classArgs": {"size": 4}}
    one = spawn({"tuner": config, "assessor": {"name": "Medianstop"}}, peer=False)
    assert one.initialize() is None
    assert one.request(2) == [{"parameter_id": "0_4"}] * 2
    assert one.terminate() == 0
    assert "The assessor is ignored" in one.output()


# usage


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pitchpipe.dispatcher", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("text", ["?", "e30=", "MQ==", encode_exp_params(RANDOM)])
def test_bad_usage_ends_it_with_2_and_a_sentence(text):
    result = run("--exp_params", text)  # the last one is good, but there are no pipes
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_standby_whose_manager_is_gone_ends_with_0():
    command = [sys.executable, "-m", "pitchpipe.dispatcher", "--standby"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_check_prints_one_line_of_json_whatever_plug_ins_print(odd):
    config = {
        **odd(),
        "searchSpace": SPACE,
        "assessor": {"name": "Medianstop", "classArgs": {"start_stop": 1}},
    }
    result = run("--check", "--exp_params", encode_exp_params(config))
    assert result.returncode == 0
    (line,) = result.stdout.splitlines()
    answer = json.loads(line)
    assert (answer["directions"], answer["warnings"]) == ({"assessor": "maximize"}, [])
    (problem,) = answer["problems"]
    assert problem["path"] == ["assessor", "classArgs", "start_stop"]
    assert set(problem) == {"path", "message", "hint"}
    assert "made" in result.stderr
