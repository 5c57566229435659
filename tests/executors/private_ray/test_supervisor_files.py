"""The supervisor's files, its lock, and the removal of what a dead supervisor left."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pitchpipe.executors.private_ray.supervisor_files import (
    StartLock,
    SupervisorFiles,
    SupervisorState,
    make_temp_directory,
    remove_leftovers,
    session_processes,
)

from ..ray_support import eventually


@pytest.fixture
def files(runtime_directory: Path) -> SupervisorFiles:
    return SupervisorFiles.current()


@pytest.fixture
def sleeper() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return a function that starts a process with some arguments; it is killed after the test."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "import time; time.sleep(600)", *arguments]
        processes.append(process := subprocess.Popen(command))
        # A process that replaces its program has no command line for a moment, even after Popen has returned.
        eventually(lambda: bool(psutil.Process(process.pid).cmdline()))
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


def state_of(process: subprocess.Popen[bytes], folder: Path, age: float = 0.0) -> SupervisorState:
    """Return the state of a supervisor with the id of a process, which started `age` seconds before it."""
    created = psutil.Process(process.pid).create_time() - age
    return SupervisorState(pid=process.pid, created=created, temp_dir=str(folder))


def test_state_is_read_as_it_was_written_and_private(files):
    state = SupervisorState(
        pid=1,
        created=2.0,
        temp_dir="/tmp/x",
        address="host:1",
        token_path="/tmp/x/token",
        versions={"Ray": "2"},
        resources={"CPU": 2.0},
    )
    files.write_state(state)
    assert files.read_state() == state
    assert stat.S_IMODE(files.state.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1, "strange": 2}'])
def test_state_that_makes_no_sense_counts_as_none(files, text):
    files.state.write_text(text)
    assert files.read_state() is None


def test_lock_is_for_one(files):
    first, second = StartLock(files.lock), StartLock(files.lock)
    assert first.try_take()
    assert not second.try_take()
    first.release()
    assert second.try_take()
    second.release()


def test_temp_directory_is_private_and_leaves_room_for_socket_paths(monkeypatch, tmp_path):
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = make_temp_directory()
    assert len(str(folder)) < 40
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.rmdir()


def test_processes_of_a_session_are_known_by_its_folder(sleeper):
    folder = make_temp_directory()
    ours, _ = sleeper(f"--dir={folder}/session"), sleeper("--dir=/tmp/pitchpipe-ray-other")
    assert [process.pid for process in session_processes(str(folder))] == [ours.pid]
    folder.rmdir()


def test_leftovers_of_a_dead_supervisor_are_removed(files, sleeper):
    folder = make_temp_directory()
    (folder / "session").mkdir()
    orphan = sleeper(f"--dir={folder}")
    supervisor = sleeper("supervisor")
    files.write_state(state_of(supervisor, folder))
    files.socket.touch()
    remove_leftovers(files)
    assert not psutil.pid_exists(orphan.pid)
    assert not psutil.pid_exists(supervisor.pid)
    for process in (orphan, supervisor):
        process.wait(5)  # reaped already, as Popen finds out now
    assert not folder.exists()
    assert not files.socket.exists()
    assert not files.state.exists()


def test_process_that_reuses_the_supervisors_id_is_spared(files, sleeper):
    folder = make_temp_directory()
    other = sleeper()
    files.write_state(state_of(other, folder, age=100.0))
    remove_leftovers(files)
    assert other.poll() is None
    assert not folder.exists()


def test_folder_that_is_not_a_supervisors_is_spared(files, tmp_path):
    (tmp_path / "precious").mkdir()
    files.write_state(SupervisorState(pid=os.getpid(), created=0.0, temp_dir=str(tmp_path / "precious")))
    remove_leftovers(files)
    assert (tmp_path / "precious").is_dir()
    assert not files.state.exists()
