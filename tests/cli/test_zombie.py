"""A manager that was killed, and whose parent has not taken notice of it, is gone all the same."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from pitchpipe.store.folder import ManagerInfo

from .conftest import Call, Storing


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """Yield a process that runs until its standard input is closed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def make_zombie(process: "subprocess.Popen[bytes]") -> ManagerInfo:
    info = ManagerInfo(process.pid, socket.gethostname(), psutil.Process(process.pid).create_time())
    assert info.is_alive
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not reaped
    return info


def test_a_zombie_is_not_alive(child: "subprocess.Popen[bytes]") -> None:
    info = make_zombie(child)
    assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
    assert not info.is_alive
    assert info.wait(0.0)


def test_a_process_that_lives_is_waited_for(child: "subprocess.Popen[bytes]") -> None:
    info = ManagerInfo(child.pid, socket.gethostname(), psutil.Process(child.pid).create_time())
    assert not info.wait(0.01)
    child.send_signal(signal.SIGKILL)
    assert info.wait(10.0)


def test_status_and_stop_take_a_zombie_for_a_manager_that_is_gone(
    child: "subprocess.Popen[bytes]", stored: Storing, call: Call
) -> None:
    folder = stored(status="RUNNING").write("e1", [])
    info = make_zombie(child)
    facts = {"pid": info.pid, "host": info.host, "create_time": info.create_time}
    (folder.path / "manager.json").write_text(json.dumps(facts))
    assert "its manager is gone" in call("status", "e1").out
    stored(status="DONE").write("e2", [])
    (folder.path.parent / "e2" / "manager.json").write_text(json.dumps(facts))
    assert call("stop", "e2").out == "experiment e2 is not running\n"
