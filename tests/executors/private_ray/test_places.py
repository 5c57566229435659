"""The keeper's files, its lock, and the removal of what a dead keeper left."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from pitchpipe.executors.private_ray.places import (
    KeeperPlace,
    KeeperState,
    StartLock,
    make_temp_directory,
    remove_leftovers,
    session_processes,
)


@pytest.fixture
def place(runtime_directory: Path) -> KeeperPlace:
    return KeeperPlace.current()


def sleeper(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *arguments])


def test_state_is_read_as_it_was_written_and_private(place):
    state = KeeperState(1, 2.0, "/tmp/x", "host:1", "/tmp/x/token", {"Ray": "2"}, {"CPU": 2.0})
    place.write_state(state)
    assert place.read_state() == state
    assert stat.S_IMODE(place.state.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1, "strange": 2}'])
def test_state_that_makes_no_sense_counts_as_none(place, text):
    place.state.write_text(text)
    assert place.read_state() is None


def test_lock_is_for_one(place):
    first, second = StartLock(place.lock), StartLock(place.lock)
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


def test_processes_of_a_session_are_known_by_its_folder():
    folder = make_temp_directory()
    ours, other = sleeper(f"--dir={folder}/session"), sleeper("--dir=/tmp/pitchpipe-ray-other")
    try:
        assert [process.pid for process in session_processes(str(folder))] == [ours.pid]
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()
        folder.rmdir()


def test_leftovers_of_a_dead_keeper_are_removed(place):
    folder = make_temp_directory()
    (folder / "session").mkdir()
    stray = sleeper(f"--dir={folder}")
    keeper = sleeper("keeper")
    created = psutil.Process(keeper.pid).create_time()
    place.write_state(KeeperState(keeper.pid, created, str(folder)))
    place.socket.touch()
    remove_leftovers(place)
    assert not psutil.pid_exists(stray.pid)
    assert not psutil.pid_exists(keeper.pid)
    for process in (stray, keeper):
        process.wait(5)  # reaped already, as Popen finds out now
    assert not folder.exists()
    assert not place.socket.exists()
    assert not place.state.exists()


def test_process_that_has_got_the_keepers_number_is_spared(place):
    folder = make_temp_directory()
    other = sleeper()
    place.write_state(KeeperState(other.pid, psutil.Process(other.pid).create_time() - 100.0, str(folder)))
    try:
        remove_leftovers(place)
        assert other.poll() is None
        assert not folder.exists()
    finally:
        other.kill()
        other.wait()


def test_folder_that_is_not_a_keepers_is_spared(place, tmp_path):
    (tmp_path / "precious").mkdir()
    place.write_state(KeeperState(os.getpid(), 0.0, str(tmp_path / "precious")))
    remove_leftovers(place)
    assert (tmp_path / "precious").is_dir()
    assert not place.state.exists()
