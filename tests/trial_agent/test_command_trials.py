"""Command trials, each run by a real agent process: what they report, how they end, what they leave."""

import json
import os
import re
import shlex
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.compat.nni.alias import PATH

from .client import PATIENCE, LocalAgent, is_gone, read_spool, start, wait_until

PYTHON = shlex.quote(sys.executable)
REPORT = 'echo \'{"intermediate": %s}\' >> "$PITCHPIPE_REPORTS"'
READY = REPORT % 1


def script(agent: LocalAgent, text: str, name: str = "trial.py") -> str:
    """Write a Python trial script and return the command that runs it."""
    (agent.folder / name).write_text(text)
    return f"{PYTHON} {name}"


def reports(events: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(e["kind"], e["sequence"], e["value"]) for e in events if e["e"] == "report"]


def pid_from(path: Path) -> int:
    """Wait for a pid that a process writes into a file."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"a pid in {path.name}")
    return int(path.read_text())


def test_shell_script_reports_by_appending_a_line(agent: LocalAgent) -> None:
    events = agent.command(
        f"{REPORT % 0.5}; {REPORT % 0.75}; echo '{{\"final\": 0.9}}' >> $PITCHPIPE_REPORTS"
    ).run()
    assert reports(events) == [("intermediate", 0, "0.5"), ("intermediate", 1, "0.75"), ("final", 0, "0.9")]
    assert events[0]["e"] == "started"
    assert events[-1].items() >= {"exit_code": 0, "signal": None, "error": None, "killed": False}.items()


def test_python_script_gets_its_parameters_and_ids_and_reports(agent: LocalAgent) -> None:
    command = script(
        agent,
        "import pitchpipe as p, json\n"
        "parameters = p.get_next_parameter()\n"
        "assert p.get_current_parameter('lr') == parameters['lr'] == p.get_next_parameters()['lr']\n"
        "p.report_intermediate_result(parameters['lr'])\n"
        "p.report_final_result({'default': 1, 'nan': float('nan')})\n"
        "print(p.get_experiment_id(), p.get_trial_id(), p.get_sequence_id())\n",
    )
    events = agent.command(command).run(parameters={"lr": 0.25}, sequence_id=7)
    assert reports(events) == [("intermediate", 0, "0.25"), ("final", 0, '{"default": 1, "nan": NaN}')]
    assert agent.trial_file("stdout", 7).read_text() == "exp AbCdE 7\n"
    assert json.loads(agent.trial_file("parameters.json", 7).read_text())["parameters"] == {"lr": 0.25}


def test_output_goes_to_files_of_the_attempt(agent: LocalAgent) -> None:
    client = agent.command("echo out; echo err >&2")
    client.tell(start(attempt=1), start(attempt=2))
    client.until_ended(attempt=2)
    found = [agent.trial_file(name).read_text() for name in ("stdout", "stderr", "stdout-2", "stderr-2")]
    assert found == ["out\n", "err\n"] * 2
    assert agent.trial_file("reports-2.jsonl").exists()


def test_result_reported_right_before_a_violent_end_is_not_lost(agent: LocalAgent) -> None:
    command = script(
        agent,
        "import pitchpipe as p, os, signal\n"
        "p.report_final_result(0.5)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
    )
    events = agent.command(command).run()
    assert reports(events) == [("final", 0, "0.5")]
    assert (events[-1]["exit_code"], events[-1]["signal"], events[-1]["killed"]) == (None, 9, False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_trial_that_is_killed_together_with_its_agent_has_not_failed(
    agent: LocalAgent, number: signal.Signals
) -> None:
    """Check a machine that shuts down, and a Ray worker, whose children are killed first."""
    client = agent.command(f"{READY}; exec sleep 600")
    events = client.until_reported()
    (pid,) = [event["pid"] for event in events if event["e"] == "started"]
    os.kill(pid, number)
    wait_until(lambda: not psutil.pid_exists(pid))  # the agent knows of its end
    agent.process.send_signal(number)
    agent.process.wait(PATIENCE)
    ends = [
        event
        for event in read_spool(agent.trial_file("reports-1.jsonl"), "AbCdE", 1)
        if event["e"] == "ended"
    ]
    assert [end["killed"] for end in ends] == ([True] if number == signal.SIGTERM else [])


def test_many_processes_report_at_once_and_no_line_is_torn_or_lost(agent: LocalAgent) -> None:
    command = script(
        agent,
        "import pitchpipe as p, subprocess, sys\n"
        "if len(sys.argv) == 1:\n"
        "    ranks = [subprocess.Popen([sys.executable, __file__, str(r)]) for r in range(4)]\n"
        "    sys.exit(max(rank.wait() for rank in ranks))\n"
        "for i in range(500):\n"
        "    p.report_intermediate_result({'default': i, 'rank': int(sys.argv[1]), 'pad': 'x' * 200})\n",
    )
    events = agent.command(command).run()
    found = [json.loads(value) for _, _, value in reports(events)]
    assert [sequence for _, sequence, _ in reports(events)] == list(range(2000))
    for rank in range(4):
        assert [v["default"] for v in found if v["rank"] == rank] == list(range(500))
    assert {event["e"] for event in events} == {"started", "report", "ended"}


def test_burst_of_100000_lines_arrives_whole_and_in_order(agent: LocalAgent) -> None:
    command = script(
        agent,
        "import os\n"
        "with open(os.environ['PITCHPIPE_REPORTS'], 'a') as f:\n"
        "    for i in range(100_000): f.write('{\"intermediate\": %d}\\n' % i)\n",
    )
    found = reports(agent.command(command).run())
    assert [(sequence, value) for _, sequence, value in found] == [(i, str(i)) for i in range(100_000)]


def test_rubbish_in_the_spool_is_a_problem_and_the_trial_continues(agent: LocalAgent) -> None:
    events = agent.command(f"echo 'loss 0.3' >> $PITCHPIPE_REPORTS; {READY}").run()
    (problem,) = (event for event in events if event["e"] == "problem")
    assert problem["message"] == "line 1 of the reports is not a JSON object: 'loss 0.3'"
    assert reports(events) == [("intermediate", 0, "1")]
    assert events[-1]["exit_code"] == 0


def test_last_line_without_newline_counts_and_the_end_is_on_a_line_of_its_own(agent: LocalAgent) -> None:
    events = agent.command("printf '{\"final\": 1}' >> $PITCHPIPE_REPORTS").run()
    assert reports(events) == [("final", 0, "1")]
    lines = agent.trial_file("reports-1.jsonl").read_text().splitlines()
    assert lines[0] == '{"final": 1}'
    assert json.loads(lines[1])["ended"]["exit_code"] == 0


def test_script_that_raises_ends_with_the_last_lines_of_its_traceback(agent: LocalAgent) -> None:
    command = script(
        agent,
        "import sys\n"
        "for i in range(1000): print('noise', i, file=sys.stderr)\n"
        "raise ValueError('learning rate \\N{GREEK SMALL LETTER ALPHA}')\n",
    )
    ended = agent.command(command).run()[-1]
    assert ended["exit_code"] == 1
    assert ended["error"].startswith("Traceback (most recent call last)")
    assert ended["error"].endswith("ValueError: learning rate \N{GREEK SMALL LETTER ALPHA}")
    assert len(ended["error"].encode()) <= 4096


def test_flood_on_stderr_is_cut_at_a_line(agent: LocalAgent) -> None:
    ended = agent.command("for i in $(seq 2000); do echo line $i >&2; done; exit 3").run()[-1]
    assert ended["exit_code"] == 3
    assert ended["error"].startswith("line ")
    assert ended["error"].endswith("line 2000")
    assert 4000 < len(ended["error"]) <= 4096


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("./plain", 126, "not executable: ./plain"),
        ("./no-interpreter", 127, "the interpreter named in its first line does not exist"),
        ("trainn > log", 127, "trainn: command not found"),
    ],
)
def test_command_that_cannot_run_ends_with_the_reason(
    agent: LocalAgent, command: str, code: int, words: str
) -> None:
    (agent.folder / "plain").write_text("echo")
    broken = agent.folder / "no-interpreter"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    ended = agent.command(command).run()[-1]
    assert (ended["exit_code"], ended["killed"]) == (code, False)
    assert words in ended["error"]


def test_script_without_interpreter_line_runs_as_shells_run_it(agent: LocalAgent) -> None:
    path = agent.folder / "train"
    path.write_text(READY + "\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    assert reports(agent.command("./train").run()) == [("intermediate", 0, "1")]


def test_missing_code_directory_ends_the_attempt_and_not_the_agent(agent: LocalAgent) -> None:
    gone = str(agent.folder / "gone")
    ended = agent.command("true", code_directory=gone).run()[-1]
    assert ended["error"] == f"the code directory does not exist: {gone}"
    assert agent.command("true").run(attempt=2)[-1]["exit_code"] == 0


def test_environment_of_a_trial(agent: LocalAgent) -> None:
    agent.command("env", environment={"DATA": "/data", "PYTHONUNBUFFERED": ""}).run(gpus=[0, 2])
    lines = agent.trial_file("stdout").read_text().splitlines()
    environment = dict(line.split("=", 1) for line in lines if "=" in line)
    assert environment["CUDA_VISIBLE_DEVICES"] == "0,2"
    assert (environment["DATA"], environment["PYTHONUNBUFFERED"]) == ("/data", "")
    assert environment["PITCHPIPE_OUTPUT_DIR"] == str(agent.folder / "trials" / "0")
    assert "PITCHPIPE_AGENT_TOKEN" not in environment
    assert environment["HOME"] == os.environ["HOME"]


def test_command_gets_parameters_where_it_asks_for_them(agent: LocalAgent) -> None:
    text = (
        "import argparse, pitchpipe\n"
        "plain = argparse.ArgumentParser()\n"
        "plain.add_argument('--lr', type=float)\n"
        "plain.add_argument('--units', type=int, default=1)\n"
        "pitchpipe.report_intermediate_result(vars(plain.parse_args()))\n"
        "pitchpipe.report_final_result(vars(pitchpipe.parse_args(plain)))\n"
    )
    client = agent.command(script(agent, text) + " --lr={lr}")
    assert reports(client.run(parameters={"lr": 0.5, "units": 8.0})) == [
        ("intermediate", 0, '{"lr": 0.5, "units": 1}'),
        ("final", 0, '{"lr": 0.5, "units": 8}'),
    ]


def test_arguments_with_one_name_end_the_attempt_and_not_the_agent(agent: LocalAgent) -> None:
    client = agent.command("true {args}")
    assert client.run(parameters={"k": 1, "model": {"_name": "knn", "k": 2}})[-1]["error"].startswith(
        "two parameters are called k: as arguments"
    )
    assert client.run(attempt=2, parameters=[1])[-1]["exit_code"] == 0


def test_script_for_nni_finds_what_nni_gives_it(agent: LocalAgent) -> None:
    text = (
        "import os, nni\n"
        "from beside import HERE\n"
        "names = ('EXP_ID', 'TRIAL_JOB_ID', 'TRIAL_SEQ_ID', 'OUTPUT_DIR', 'SYS_DIR', 'CODE_DIR', 'PLATFORM')\n"
        "print([os.environ.get('NNI_' + name) for name in names], os.environ['PYTHONPATH'])\n"
        "nni.report_intermediate_result(0.5)\n"
        "nni.report_final_result({'default': HERE, **nni.get_next_parameter()})\n"
    )
    beside, code = agent.folder / "beside", agent.folder / "code"
    for folder in (beside, code):
        folder.mkdir()
    (beside / "beside.py").write_text("HERE = 1\n")
    script(agent, text)
    command = f"{PYTHON} {shlex.quote(str(agent.folder / 'trial.py'))}"
    client = agent.command(command, environment={"PYTHONPATH": str(beside)}, code_directory=str(code))
    assert reports(client.run(parameters={"lr": 0.1}, budget=9.0)) == [
        ("intermediate", 0, "0.5"),
        ("final", 0, '{"default": 1, "lr": 0.1, "TRIAL_BUDGET": 9}'),
    ]
    own = str(agent.folder / "trials" / "0")
    found = ["exp", "AbCdE", "0", own, own, str(code), "local"]
    assert agent.trial_file("stdout").read_text() == f"{found} {beside}{os.pathsep}{PATH}\n"


def test_devices_are_left_alone_hidden_or_listed(tmp_path: Path, socket_folder: str) -> None:
    agent = LocalAgent(tmp_path, socket_folder, CUDA_VISIBLE_DEVICES="as it was", RAY_JOB_ID="1")
    try:
        client = agent.command('echo "$CUDA_VISIBLE_DEVICES/$RAY_JOB_ID"')
        for number, (gpus, shown) in enumerate([(None, "as it was"), ([], ""), ([3], "3")]):
            client.run(gpus=gpus, trial=f"t{number}", sequence_id=number)
            assert agent.trial_file("stdout", number).read_text() == f"{shown}/\n"
    finally:
        agent.stop()


def test_trial_killed_by_sigterm_ends_as_killed(agent: LocalAgent) -> None:
    client = agent.command(f"{READY}; sleep 600")
    client.until_reported()
    (ended,) = client.kill()
    assert (ended["killed"], ended["signal"], ended["error"]) == (True, 15, None)


def test_script_that_ignores_sigterm_is_gone_after_the_grace(agent: LocalAgent) -> None:
    client = agent.command(f"trap '' TERM; {READY}; while true; do sleep 600; done", grace=0.2)
    pid = client.until_reported()[0]["pid"]
    (ended,) = client.kill()
    assert (ended["killed"], ended["signal"]) == (True, 9)
    assert is_gone(pid)


def test_second_kill_with_less_grace_hastens_the_end(agent: LocalAgent) -> None:
    client = agent.command(f"trap '' TERM; {READY}; while true; do sleep 600; done", grace=600.0)
    client.until_reported()
    client.tell({"op": "kill", "trial": "AbCdE", "attempt": 1})
    assert client.kill(grace=0.0)[-1]["signal"] == 9


def test_child_of_a_killed_shell_gets_its_grace_too(agent: LocalAgent) -> None:
    command = script(
        agent,
        "import signal, sys, time, pitchpipe as p\n"
        "def save(*_):\n"
        "    time.sleep(0.3)\n"
        "    p.report_intermediate_result('saved')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "p.report_intermediate_result('ready')\n"
        "while True: signal.pause()\n",
    )
    client = agent.command(f"{command}; true")  # the shell dies at once, its child takes its time
    client.until_reported()
    events = client.kill(grace=60)
    assert reports(events) == [("intermediate", 1, '"saved"')]


@pytest.mark.parametrize("way", ["sleep 600 &", "setsid sleep 600 &", "(setsid sh -c 'sleep 600; true' &) ;"])
def test_descendants_are_gone_when_a_killed_trial_has_ended(agent: LocalAgent, way: str) -> None:
    client = agent.command(f"{way} {READY}; sleep 600")
    client.until_reported()
    wait_until(lambda: len(agent.trial_processes()) >= 2, "the start of the descendant")
    processes = agent.trial_processes()
    client.kill()
    assert [pid for pid in processes if not is_gone(pid)] == []


def test_stubborn_descendant_in_its_own_session_is_killed_after_the_grace(agent: LocalAgent) -> None:
    inner = f"trap '' TERM; {READY}; echo $$ > pid; while true; do sleep 600; done"
    (agent.folder / "inner.sh").write_text(inner)
    client = agent.command("setsid sh inner.sh & sleep 600")
    client.until_reported()
    pid = pid_from(agent.folder / "pid")
    client.kill(grace=0.1)
    assert is_gone(pid)


def test_what_a_finished_trial_left_in_its_group_is_killed(agent: LocalAgent) -> None:
    events = agent.command("sleep 600 & echo $! > pid; exit 0").run()
    assert events[-1]["exit_code"] == 0
    pid = pid_from(agent.folder / "pid")
    wait_until(lambda: is_gone(pid), "the end of the left-over process")


def test_attempt_is_run_once_however_often_it_is_started(agent: LocalAgent) -> None:
    client = agent.command("echo x >> ran")
    client.tell(start(), start(), start(trial="other"))
    events = client.until_ended("other")
    client.tell(start(), start(trial="third"))
    events += client.until_ended("third")
    assert [e["trial"] for e in events if e["e"] == "ended"] == ["AbCdE", "other", "third"]
    assert (agent.folder / "ran").read_text() == "x\n" * 3


def test_kill_of_an_attempt_that_does_not_run_is_ignored(agent: LocalAgent) -> None:
    client = agent.command(f"{READY}; sleep 600")
    client.until_reported(attempt=2)
    for trial, attempt in [("AbCdE", 1), ("other", 2)]:
        client.tell({"op": "kill", "trial": trial, "attempt": attempt})
    assert client.ask({"op": "hello"})["running"][0]["attempt"] == 2
    client.tell(
        {"op": "kill", "trial": "AbCdE", "attempt": 2}, {"op": "kill", "trial": "AbCdE", "attempt": 2}
    )
    assert len(client.until_ended(attempt=2)) == 1


def test_attempt_killed_while_it_waits_never_starts(agent: LocalAgent) -> None:
    client = agent.command(f"{READY}; sleep 600")
    client.tell(start(), start(trial="other"))
    client.events_until(lambda event: event["e"] == "report")
    client.tell({"op": "kill", "trial": "other", "attempt": 1})
    (ended,) = client.until_ended("other")
    assert (ended["killed"], ended["exit_code"]) == (True, None)
    assert {event["trial"] for event in client.kill()} == {"AbCdE"}


def test_trial_over_its_memory_limit_ends_with_the_figures(agent: LocalAgent) -> None:
    command = script(agent, "import time\nhoard = b'x' * (300 * 2**20)\ntime.sleep(600)\n")
    ended = agent.command(command, memory_limit=200 * 2**20).run()[-1]
    assert not ended["killed"]
    assert ended["error"].endswith("more than the limit of 200 MiB")
    assert ended["out_of_memory"]
    used = re.match(r"used (\d+) MiB, ", ended["error"])
    assert used is not None
    assert 200 < int(used[1]) < 400  # a busy machine looks while the script takes it


def test_file_of_the_experiment_is_read_in_parts_and_no_other(agent: LocalAgent) -> None:
    client = agent.command("echo hello")
    client.run()
    reply = client.ask({"op": "read_file", "path": "trials/0/stdout", "offset": 1, "limit": 3, "id": 9})
    assert reply == {"data": "ZWxs", "size": 6, "id": 9}
    (agent.folder / "link").symlink_to("/etc/passwd")
    for path in ["../x", "/etc/passwd", "link"]:
        reply = client.ask({"op": "read_file", "path": path, "offset": 0, "limit": 3})
        assert "out of the experiment's folder" in reply["error"]
    assert "No such file" in client.ask({"op": "read_file", "path": "no", "offset": 0, "limit": 3})["error"]


def test_reports_that_a_forgotten_start_left_are_set_aside(agent: LocalAgent) -> None:
    spool = agent.trial_file("reports-1-5f.jsonl")
    spool.parent.mkdir(parents=True)
    spool.write_text('{"intermediate": 9}\n')
    assert reports(agent.command(READY).run(mark="5f")) == [("intermediate", 0, "1")]
    assert '"intermediate": 9' not in spool.read_text()
    assert spool.with_name("reports-1-5f.jsonl.old").read_text() == '{"intermediate": 9}\n'


def test_agent_of_a_forgotten_trial_leaves_when_another_has_its_name(agent: LocalAgent) -> None:
    """Check a manager's database that was replaced by an older copy while the agent ran."""
    client = agent.command(f"{READY}; sleep 60")
    found = client.until_reported(mark="a")
    assert {event["mark"] for event in found} == {"a"}
    client.tell(start(mark="b"))
    assert agent.process.wait(30) == 0
