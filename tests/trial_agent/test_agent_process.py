"""The agent as a process: its command line, its start, and what is left when it is killed at any moment."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .client import Client, LocalAgent, is_gone, read_spool, start, wait_until

REPORT = 'echo \'{"intermediate": 1}\' >> "$PITCHPIPE_REPORTS"'


@pytest.mark.parametrize("way", ["sleep 600 &", "setsid sleep 600 &", "env -i sleep 600 &"])
def test_nothing_of_a_trial_outlives_the_kill_of_its_agent_and_no_report_is_lost(
    agent: LocalAgent, way: str
) -> None:
    client = agent.command(f"{way} {REPORT}; sleep 600")
    client.until_reported()
    children = psutil.Process(agent.process.pid).children(recursive=True)
    pids = {*agent.trial_processes(), *(child.pid for child in children)}
    assert len(pids) >= 3  # the script, what it left in the background, the watchdog
    agent.process.kill()
    agent.process.wait()
    for pid in pids:
        wait_until(lambda pid=pid: is_gone(pid), f"the end of process {pid}")
    events = read_spool(agent.trial_file("reports-1.jsonl"), "AbCdE", 1)
    assert [(event["e"], event["value"]) for event in events] == [("report", "1")]


def test_report_written_while_the_agent_is_frozen_survives_its_kill(agent: LocalAgent) -> None:
    client = agent.command(f"{REPORT}; read line < fifo; {REPORT}; echo done > reported; sleep 600")
    os.mkfifo(agent.folder / "fifo")
    client.until_reported()
    agent.process.send_signal(signal.SIGSTOP)
    (agent.folder / "fifo").write_text("go\n")
    wait_until(lambda: (agent.folder / "reported").exists())
    agent.process.kill()
    agent.process.wait()
    events = read_spool(agent.trial_file("reports-1.jsonl"), "AbCdE", 1)
    assert [event["sequence"] for event in events] == [0, 1]


def test_watchdog_that_was_killed_is_replaced_for_the_next_trial(agent: LocalAgent) -> None:
    client = agent.command("true")
    client.run()
    (watchdog,) = psutil.Process(agent.process.pid).children()
    assert "watchdog.py" in " ".join(watchdog.cmdline())
    watchdog.kill()
    wait_until(lambda: is_gone(watchdog.pid))
    client.tell(start(attempt=2), start(attempt=3))
    client.until_ended(attempt=3)
    (second,) = [c for c in psutil.Process(agent.process.pid).children() if c.status() != "zombie"]
    assert second.pid != watchdog.pid


def test_finished_trials_leave_no_process_and_no_descriptor_behind(agent: LocalAgent) -> None:
    client = agent.command(REPORT)
    process = psutil.Process(agent.process.pid)
    descriptors = 0
    for attempt in range(1, 12):
        client.run(attempt=attempt)
        if attempt == 1:
            descriptors = process.num_fds()
    assert process.num_fds() <= descriptors
    assert len(process.children(recursive=True)) == 1  # the watchdog


def test_function_trials_start_no_watchdog(agent: LocalAgent) -> None:
    agent.function(lambda parameters: 1).run()
    assert psutil.Process(agent.process.pid).children() == []


@pytest.mark.parametrize("arguments", [[], ["--agent"], ["--agent", "a", "--folder", "/"]])
def test_wrong_command_line_prints_the_usage(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "pitchpipe.trial_agent", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("usage: python -m pitchpipe.trial_agent")


def test_token_may_come_through_a_descriptor(tmp_path: Path, socket_folder: str) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a secret\n")
    os.close(writer)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{socket_folder}/a")
        listener.listen()
        descriptors = [listener.fileno(), reader]
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pitchpipe.trial_agent", "--agent", "x", "--folder", str(tmp_path)),
                *("--listen-fd", str(listener.fileno()), "--token-fd", str(reader)),
            ],
            pass_fds=descriptors,
        )
    os.close(reader)
    client = Client(f"{socket_folder}/a")
    client.greet("a secret")
    client.tell({"op": "shutdown"})
    assert process.wait(30) == 0
    client.close()
