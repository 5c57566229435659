"""The processes of an attempt: found by group and by mark, and ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pitchpipe.trial_agent import processes, watchdog
from pitchpipe.trial_agent.processes import ProcessTree, carries, command_words, is_zombie

from .client import is_gone, wait_until

MARK = f"PROCESS_TEST=mark-{os.getpid()}"
NAME, VALUE = MARK.split("=")


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[bytes]]:
    """Start a shell in its own session, with a child in its group and one in a session of its own."""
    command = "sleep 600 & setsid sleep 600 & echo ready; wait"
    process = subprocess.Popen(
        ["sh", "-c", command],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, NAME: VALUE},
    )
    assert process.stdout is not None
    process.stdout.readline()
    wait_until(lambda: [child.name() for child in psutil.Process(process.pid).children()] == ["sleep"] * 2)
    wait_until(lambda: len(tree_of(process).members()) == 3)
    yield process
    watchdog.kill_all(process.pid, MARK.encode())
    process.wait()
    process.stdout.close()


def tree_of(process: subprocess.Popen[bytes]) -> ProcessTree:
    return ProcessTree(process.pid, MARK.encode())


def test_members_are_the_group_and_the_marked(leader: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: any(os.getpgid(pid) != leader.pid for pid in tree_of(leader).members()))
    members = set(tree_of(leader).members())
    assert members == {leader.pid, *(child.pid for child in psutil.Process(leader.pid).children())}
    unmarked = ProcessTree(leader.pid, b"PROCESS_TEST=other").members()
    assert len(unmarked) == 2


def test_mark_that_is_only_the_beginning_of_a_value_is_another_mark(leader: subprocess.Popen[bytes]) -> None:
    tree = ProcessTree(None, MARK[:-1].encode())
    assert tree.members() == []


# Two processes in a session of their own, until a file is gone: one starts a program in its place again and again, one
# lives on in a child.
REPLACING = 'if [ -e "$1" ]; then exec sh -c "$0" "$0" "$1"; fi'
FORKING = """
import os, sys, time
while os.path.exists(sys.argv[1]):
    time.sleep(0.005)
    if os.fork():
        os._exit(0)
"""


@pytest.mark.parametrize(
    "command", [["sh", "-c", REPLACING, REPLACING], [sys.executable, "-I", "-S", "-c", FORKING]]
)
@pytest.mark.parametrize(
    "look", [lambda: ProcessTree(None, MARK.encode()).members(), lambda: watchdog.marked(MARK.encode())]
)
def test_process_is_seen_while_it_replaces_or_forks_itself(
    command: list[str], look: Callable[[], list[int]], tmp_path: Path
) -> None:
    running = tmp_path / "running"
    running.touch()
    with subprocess.Popen(
        [*command, str(running)],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, NAME: VALUE},
    ) as process:
        try:
            assert all(look() for _ in range(40))
        finally:
            running.unlink()
            process.communicate()


def test_process_carries_its_mark_and_has_its_command_line_from_the_moment_of_its_start() -> None:
    """In the middle of an exec a process has neither: many of a hundred first looks find nothing."""
    missed = []
    for _ in range(100):
        with subprocess.Popen(["sleep", "600"], env={**os.environ, NAME: VALUE}) as process:
            try:
                found = carries(process.pid, MARK.encode()), command_words(process.pid)
            finally:
                process.kill()
        missed += [found] if found != (True, ["sleep", "600"]) else []
    assert missed == []


def test_process_that_has_ended_carries_nothing_and_has_no_command_line() -> None:
    with subprocess.Popen(["sleep", "600"], env={**os.environ, NAME: VALUE}) as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for _ in range(2):  # a zombie, then gone
            assert (carries(process.pid, MARK.encode()), command_words(process.pid)) == (False, [])
            process.wait()


def test_without_a_group_a_tree_is_what_carries_the_mark(leader: subprocess.Popen[bytes]) -> None:
    tree = ProcessTree(None, MARK.encode())
    assert sorted(tree.members()) == sorted(tree_of(leader).members())
    tree.signal_group(signal.SIGKILL)
    assert leader.poll() is None
    assert tree.kill(time.monotonic()) == []
    assert leader.wait() == -signal.SIGKILL


def test_kill_waits_for_those_who_go_by_themselves(leader: subprocess.Popen[bytes]) -> None:
    tree = tree_of(leader)
    members = tree.members()
    tree.signal_group(signal.SIGTERM)
    tree.signal_orphans(signal.SIGTERM)
    before = time.monotonic()
    assert tree.kill(before + 600) == []
    assert time.monotonic() - before < 60
    assert leader.wait() == -signal.SIGTERM
    assert all(is_gone(pid) for pid in members)


def test_kill_after_the_deadline_takes_all(leader: subprocess.Popen[bytes]) -> None:
    members = tree_of(leader).members()
    assert tree_of(leader).kill(time.monotonic()) == []
    assert leader.wait() == -signal.SIGKILL
    assert all(is_gone(pid) for pid in members)


def test_tree_is_found_without_proc_and_pidfds(
    leader: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LINUX", False)
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    tree = tree_of(leader)
    assert len(tree.members()) == 3
    assert tree.memory() > 0
    assert tree.kill(time.monotonic()) == []
    assert leader.wait() == -signal.SIGKILL


def test_memory_is_that_of_all_members(leader: subprocess.Popen[bytes]) -> None:
    tree = tree_of(leader)

    def expected() -> int:
        return sum(psutil.Process(pid).memory_info().rss for pid in tree.members())

    wait_until(lambda: tree.memory() == expected())  # they may still be growing
    assert 0 < tree.proportional_memory() < expected()


def test_process_that_has_ended_is_a_zombie_until_it_is_reaped_and_after() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not is_zombie(process.pid)
    assert process.stdin is not None
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_zombie(process.pid)
    process.wait()
    assert is_zombie(process.pid)
    assert processes.resident_bytes(process.pid) == 0
    assert processes.proportional_bytes(process.pid) == 0


@pytest.mark.parametrize(
    ("words", "left"),
    [
        pytest.param("+ {mark}\ngroup {group}\n", 0, id="group and marks"),
        pytest.param("+ {mark}\n", 0, id="marks before it knows the group"),
        pytest.param("+ {mark}\ngroup {group}\n-\n", 3, id="released"),
    ],
)
def test_watchdog_kills_at_the_end_of_its_input_what_was_not_released(
    leader: subprocess.Popen[bytes], words: str, left: int
) -> None:
    members = tree_of(leader).members()
    command = [sys.executable, "-I", "-S", watchdog.__file__]
    words = words.format(mark=MARK.encode().hex(), group=leader.pid)
    subprocess.run(command, input=words.encode(), check=True, timeout=30)
    if left == 0:
        leader.wait()
    assert len([pid for pid in members if not is_gone(pid)]) == left
