"""The folder of an experiment: its owner, and what is made again where it is missing."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.control import continue_experiment
from pitchpipe.store import FolderError, FolderExistsError, Store, StoreError, default_directory, discard
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.manager_process import is_lock_held

from ..homeless import leave_home
from ..somebody import as_somebody


def test_owner_finds_a_folder_for_logs_also_when_it_was_deleted(tmp_path: Path) -> None:
    made = ExperimentFolder.create(tmp_path, "exp")
    made.disown()
    shutil.rmtree(made.logs)
    again = ExperimentFolder(made.path)
    again.own()
    assert again.logs.is_dir()
    again.disown()


def test_who_looks_while_it_changes_hands_reads_the_whole_of_one_note(tmp_path: Path) -> None:
    folder = ExperimentFolder.create(tmp_path, "exp")
    note = folder.path / "manager.json"
    first = note.read_text()
    folder.disown()
    note.write_text(first)  # as of a manager that was killed
    with note.open() as reader:
        folder.own()
        assert reader.read() == first
    folder.disown()


def test_directory_that_is_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    with pytest.raises(FolderError, match=f"{tmp_path}/link is a link to {tmp_path}/unmounted"):
        ExperimentFolder.create(tmp_path / "link", "new")


def test_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    folder, other = ExperimentFolder.create(tmp_path, "exp"), ExperimentFolder(tmp_path / "exp")
    with pytest.raises(FolderError):
        other.own()
    folder.disown()
    other.own()
    other.disown()


def hold(path: Path) -> subprocess.Popen[bytes]:
    """Start a process that owns a folder, as the user's manager does, until its input ends."""
    code = f"""
from pathlib import Path
from pitchpipe.store.folder import ExperimentFolder
folder = ExperimentFolder(Path({str(path)!r}))
folder.own()
print(flush=True)
input()
"""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def seen_from_elsewhere(folder: ExperimentFolder, **changes: Any) -> None:
    """Let the note of the manager be as from another machine, container or pid namespace."""
    note = folder.path / "manager.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), **changes}))


ELSEWHERE: Any = pytest.mark.parametrize(
    "changes", [{}, {"host": "another"}, {"pid": 2**22}, {"pid": os.getpid()}, {"create_time": 0.0}]
)


@ELSEWHERE
def test_manager_is_who_holds_the_lock_wherever_it_is(changes: dict[str, Any], tmp_path: Path) -> None:
    folder = ExperimentFolder.create(tmp_path, "exp")
    seen_from_elsewhere(folder, **changes)
    who = folder.manager()
    assert who is not None
    assert (who.process is not None) == (changes in ({}, {"pid": os.getpid()}))
    assert not folder.wait_until_unmanaged(0.01)
    note = (folder.path / "manager.json").read_text()
    folder.disown()
    (folder.path / "manager.json").write_text(note)  # as a killed one leaves it
    assert folder.manager() is None
    assert folder.wait_until_unmanaged(0.0)
    (folder.path / "manager.lock").unlink()  # a copy without it
    assert folder.manager() is None


def test_manager_that_was_killed_is_gone_though_its_parent_has_not_noticed(tmp_path: Path) -> None:
    folder = ExperimentFolder.create(tmp_path, "exp")
    folder.disown()
    process = hold(folder.path)
    try:
        who = folder.manager()
        assert who is not None
        assert who.pid == process.pid
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert folder.manager() is None
        assert who.process is None
    finally:
        process.kill()
        process.communicate()


def test_owner_does_not_fail_because_others_look_whether_there_is_one(tmp_path: Path) -> None:
    folder = ExperimentFolder.create(tmp_path, "exp")
    note = (folder.path / "manager.json").read_text()
    looking = threading.Event()

    def look() -> None:
        while not looking.is_set():
            ExperimentFolder(folder.path).manager()

    watchers = [threading.Thread(target=look) for _ in range(4)]
    folder.disown()
    (folder.path / "manager.json").write_text(note)
    for watcher in watchers:
        watcher.start()
    try:
        for _ in range(50):
            folder.own()
            folder.disown()
    finally:
        looking.set()
        for watcher in watchers:
            watcher.join()


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_nothing_is_started_and_what_was_there_stays(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ExperimentFolder.create(tmp_path, "old")
    made.disown()

    def refuse(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(FolderError, match="name a directory on another disk"):
        ExperimentFolder.create(tmp_path, "exp")
    assert not (tmp_path / "exp").exists()
    with pytest.raises(FolderError, match="name a directory on another disk"):
        made.own()
    assert made.path.exists()


def test_folder_that_is_closed_to_this_user_hides_no_other() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:
        directory = Path(shared)
        directory.chmod(0o755)
        for name in ("alice", "lost+found", "mine"):
            (directory / name).mkdir()
            (directory / name / "experiment.db").touch()
        closed = [directory / "alice", directory / "lost+found"]
        (directory / "mine" / "manager.lock").touch(0o000)
        for path in closed:
            path.chmod(0o000)

        def look() -> None:
            assert [folder.experiment_id for folder in ExperimentFolder.all(directory)] == ["mine"]
            assert ExperimentFolder.find(directory, "mi").experiment_id == "mine"
            for path in closed:
                with pytest.raises(FolderError, match="cannot be entered"):
                    ExperimentFolder.find(directory, path.name)
            with pytest.raises(FolderError, match="cannot be entered"):
                ExperimentFolder.shared(directory / "alice", make=True)
            assert ExperimentFolder(directory / "alice").manager() is None
            with pytest.raises(FolderError, match="cannot be written: Permission denied"):
                ExperimentFolder(directory / "mine").own()
            with pytest.raises(FolderError, match="cannot be read"):
                list(ExperimentFolder.all(directory / "alice"))
            with pytest.raises(FolderError, match="cannot be read"):
                ExperimentFolder.find(directory / "alice" / "runs", "mine")

        try:
            as_somebody(look)
        finally:
            for path in closed:
                path.chmod(0o700)


def test_experiment_in_a_directory_of_its_own_is_found_by_its_id_alone(tmp_path: Path) -> None:
    made = [ExperimentFolder.create(tmp_path / name, name).path for name in ("runs", "other", "gone")]
    for path in made:
        (path / "experiment.db").touch()
    shutil.rmtree(tmp_path / "gone")
    default = default_directory()
    assert ExperimentFolder.find(default, "ru").path == made[0]
    assert {one.path for one in ExperimentFolder.all(default)} == {*made[:2]}
    assert ExperimentFolder.find(tmp_path / "other", "other").path == made[1]
    with pytest.raises(FolderError):
        ExperimentFolder.find(tmp_path / "other", "runs")
    ExperimentFolder.create(tmp_path / "more", "more")
    assert len(list(default.iterdir())) == 3  # none of them leads to the folder that was removed


def test_experiments_with_the_same_id_are_told_apart(tmp_path: Path) -> None:
    default = default_directory()
    made = [ExperimentFolder.create(tmp_path / name, "same") for name in ("runs", "other")]
    for one in made:
        one.database.touch()
        one.disown()
    with pytest.raises(FolderError):
        ExperimentFolder.find(default, "same")
    own = ExperimentFolder.create(default, "same")
    own.database.touch()
    assert ExperimentFolder.find(default, "same").path == own.path
    assert len(list(ExperimentFolder.all(default))) == 3


def test_one_directory_with_two_names_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path / "runs")
    for name in ("runs", "alias"):
        folder = ExperimentFolder.create(tmp_path / name, f"in_{name}")
        folder.database.touch()
    assert len(list(ExperimentFolder.all(default_directory()))) == 2


@pytest.mark.parametrize("fault", ["file", "no home"])
def test_default_directory_that_cannot_be_used_harms_no_experiment(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "file":
        (tmp_path / "file").touch()
        monkeypatch.setenv("PITCHPIPE_DIR", str(tmp_path / "file"))
    else:
        monkeypatch.delenv("PITCHPIPE_DIR", raising=False)
        leave_home(monkeypatch)
    made = ExperimentFolder.create(tmp_path / "runs", "exp")
    made.database.touch()
    assert ExperimentFolder.find(tmp_path / "runs", "exp").path == made.path


def test_folder_that_another_process_makes_is_run_by_it(tmp_path: Path) -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    config = ExperimentConfig.from_dict(
        {"search_space": space, "trial_command": "true", "training_service": {"platform": "local"}}
    )
    winner = ExperimentFolder.create(tmp_path, "nightly")
    winner.database.touch()  # as it is before its first commit
    for look in (
        lambda: ExperimentFolder.create(tmp_path, "nightly"),
        lambda: continue_experiment(config, "nightly", directory=tmp_path),
    ):
        with pytest.raises(FolderError, match="is run by process") as refused:
            look()
        assert not isinstance(refused.value, FolderExistsError)
    with pytest.raises(StoreError) as unread:
        Store.view(winner.database)
    assert "delete" not in str(unread.value)
    winner.disown()
    with pytest.raises(FolderExistsError):
        ExperimentFolder.create(tmp_path, "nightly")
    with pytest.raises(StoreError, match="pitchpipe delete"):
        Store.view(winner.database)
    assert [path.name for path in tmp_path.iterdir()] == ["nightly"]


def test_folder_has_its_lock_when_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[object]()
    rename = Path.rename

    def look(path: Path, target: Path) -> Path:
        seen.append((target.exists(), is_lock_held(path)))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", look)
    folder = ExperimentFolder.create(tmp_path, "nightly")
    assert seen == [(False, True)]
    assert folder.manager() is not None


def test_what_cannot_be_removed_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "full" / "inner").mkdir(parents=True)
    for name in ("file", "empty", "full", "gone"):
        discard(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    (said,) = caplog.messages
    assert str(tmp_path / "full") in said
