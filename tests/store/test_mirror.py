"""The copy of an experiment in a storage: what is in it, and how the experiment continues from it elsewhere."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.simulated import VirtualClock
from pitchpipe.runner.effects import Changes
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.trial import Trial, TrialStatus
from pitchpipe.sdk import remove
from pitchpipe.store import ExperimentFolder, ExperimentRow, FolderError, Store, StoreTick
from pitchpipe.store.mirror import FolderStorage, Mirror, StorageError, fetch_experiment, open_storage

from ..dispatcher_threads import dispatchers_on_threads
from ..manager.experiments import config, created, resumed, run, trials_of


@pytest.fixture(params=["folder", "file URL", "memory URL"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a storage of each kind."""
    if request.param == "memory URL":
        return f"memory://{tmp_path.name}"
    prefix = "file://" if request.param == "file URL" else ""
    return f"{prefix}{tmp_path / 'shared'}"


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    """Make an experiment with one trial that runs from a checkpoint."""
    made = ExperimentFolder.create(tmp_path / "here", "exp")
    store = Store.create(
        made.database,
        ExperimentRow(id="exp", name=None, status="RUNNING", config={}, token="t", created=0.0),
        ["default"],
    )
    trial = Trial(
        trial_id="AbCdE",
        sequence_id=0,
        parameter_id=0,
        record="{}",
        created=0.0,
        status=TrialStatus.RUNNING,
        checkpoint="trials/0/checkpoints/1-1",
    )
    store.commit(StoreTick(changes=Changes(trials={"AbCdE": trial}), status="RUNNING"))
    store.close()
    save(made, "1-1")
    (made.path / "agents").mkdir()
    (made.path / "agents" / "0-0.jsonl").write_text("{}\n")
    (made.path / "logs" / "manager.log").write_text("much")
    return made


def save(folder: ExperimentFolder, name: str) -> Path:
    """Make a checkpoint of trial 0."""
    path = folder.path / "trials" / "0" / "checkpoints" / name
    path.mkdir(parents=True)
    (path / "data.json").write_text(f'"{name}"')
    return path


def test_copy_has_what_is_needed_to_continue(folder: ExperimentFolder, location: str) -> None:
    save(folder, ".1-2.partial")
    assert Mirror(folder, location).sync()
    assert open_storage(location, "exp").names() == {
        "experiment.db",
        "agents/0-0.jsonl",
        "trials/0/checkpoints/1-1/data.json",
    }


def test_copy_follows_changes_and_is_fetched_elsewhere(
    folder: ExperimentFolder, location: str, tmp_path: Path
) -> None:
    save(folder, "1-0")
    mirror = Mirror(folder, location)
    assert mirror.sync()
    with (folder.path / "agents" / "0-0.jsonl").open("a") as spool:
        spool.write("{}\n")
    shutil.rmtree(folder.path / "trials" / "0" / "checkpoints" / "1-0")
    assert Mirror(folder, location).sync()  # another manager continues with the same copy
    there = fetch_experiment(location, "exp", tmp_path / "there")
    assert (there.path / "agents" / "0-0.jsonl").read_text() == "{}\n{}\n"
    assert os.listdir(there.path / "trials" / "0" / "checkpoints") == ["1-1"]
    store = Store.view(there.database)
    assert [trial.checkpoint for trial in store.trials()] == ["trials/0/checkpoints/1-1"]
    store.close()


def test_only_what_changed_is_copied_again(folder: ExperimentFolder, tmp_path: Path) -> None:
    mirror = Mirror(folder, str(tmp_path / "shared"))
    assert mirror.sync()
    copied = tmp_path / "shared" / "exp" / "trials" / "0" / "checkpoints" / "1-1" / "data.json"
    before = copied.stat().st_ino
    assert mirror.sync()
    assert copied.stat().st_ino == before


def test_database_is_not_copied_without_the_checkpoints_that_it_speaks_of(
    folder: ExperimentFolder, tmp_path: Path
) -> None:
    shutil.rmtree(folder.path / "trials" / "0" / "checkpoints" / "1-1")  # pruned in between
    assert Mirror(folder, str(tmp_path / "shared")).sync()
    assert "experiment.db" not in open_storage(str(tmp_path / "shared"), "exp").names()


def test_database_is_not_copied_if_a_checkpoint_is_pruned_while_it_is_copied(
    folder: ExperimentFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = folder.path / "trials" / "0" / "checkpoints" / "1-1"
    (checkpoint / "a").touch()
    (checkpoint / "z").touch()
    put = FolderStorage.put

    def put_then_prune(storage: FolderStorage, source: Path, name: str) -> None:
        put(storage, source, name)
        if source.parent == checkpoint:
            remove(str(checkpoint))

    monkeypatch.setattr(FolderStorage, "put", put_then_prune)
    assert Mirror(folder, str(tmp_path / "shared")).sync()
    assert "experiment.db" not in open_storage(str(tmp_path / "shared"), "exp").names()


def test_copy_is_made_though_a_checkpoint_is_pruned_while_the_folder_is_looked_at(
    folder: ExperimentFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned = folder.path / "trials" / "0" / "checkpoints" / "1-0"
    save(folder, "1-0")
    stat = Path.stat

    def stat_after_the_removal(path: Path, **options: Any) -> os.stat_result:
        if path.parent == pruned:
            remove(str(pruned))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", stat_after_the_removal)
    assert Mirror(folder, str(tmp_path / "shared")).sync()
    assert not pruned.exists()
    assert "experiment.db" in open_storage(str(tmp_path / "shared"), "exp").names()


def test_storage_that_cannot_be_used_is_logged_once_and_tried_again(
    folder: ExperimentFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "shared").write_text("a file")
    mirror = Mirror(folder, str(tmp_path / "shared"))
    with caplog.at_level(logging.ERROR):
        assert not mirror.sync()
        assert not mirror.sync()
    assert len(caplog.records) == 1
    assert "cannot be written" in caplog.text
    (tmp_path / "shared").unlink()
    assert mirror.sync()


def test_what_cannot_be_fetched_is_said_in_words(folder: ExperimentFolder, tmp_path: Path) -> None:
    location = str(tmp_path / "shared")
    with pytest.raises(FolderError, match="no copy of experiment 'exp'"):
        fetch_experiment(location, "exp", tmp_path / "there")
    with pytest.raises(FolderError, match="is here already"):
        fetch_experiment(location, "exp", tmp_path / "here")
    with pytest.raises(StorageError):
        open_storage("nosuchthing://bucket", "exp")


def test_file_that_is_being_written_is_none_of_the_storage(tmp_path: Path) -> None:
    (tmp_path / ".data.partial").write_text("half")
    assert FolderStorage(tmp_path).names() == set()


def test_experiment_continues_from_its_copy_on_another_machine(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatchers_on_threads(monkeypatch)
    clock = VirtualClock(1000.0)
    first = created(tmp_path / "here", config(storage_path=location, max_trial_number=4), clock=clock)

    def stop_after_two() -> None:
        if first.runner is not None and first.runner.counts[TrialStatus.SUCCEEDED] == 2:
            first.stop()

    first.watch(stop_after_two)
    assert run(first) is ExperimentStatus.STOPPED
    shutil.rmtree(tmp_path / "here")
    fetch_experiment(location, "exp", tmp_path / "there")
    assert run(resumed(tmp_path / "there", clock=clock)) is ExperimentStatus.DONE
    statuses = [trial.status for trial in trials_of(tmp_path / "there")]
    assert statuses.count(TrialStatus.SUCCEEDED) >= 3


def test_what_a_database_names_is_on_the_disk_before_it(
    folder: ExperimentFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    fsync, put = os.fsync, FolderStorage.put

    def noting(descriptor: int) -> None:
        fsync(descriptor)
        log.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path))

    def putting(storage: FolderStorage, source: Path, name: str) -> None:
        put(storage, source, name)
        log.append(f"put {name}")

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(FolderStorage, "put", putting)
    assert Mirror(folder, str(tmp_path / "shared")).sync()
    checkpoint = next(line for line in log if "checkpoints/1-1/" in line)
    assert checkpoint.startswith("shared/exp/trials/0/checkpoints/1-1/.")
    assert log.index(checkpoint) < log.index("put experiment.db")
    log.clear()
    fetched = fetch_experiment(str(tmp_path / "shared"), "exp", tmp_path / "elsewhere")
    assert log[-1] == "elsewhere"
    partial = f"elsewhere/.{fetched.experiment_id}.partial"
    assert {f"{partial}/experiment.db", partial} <= set(log)


def test_copy_of_an_open_database_needs_no_log(folder: ExperimentFolder, tmp_path: Path) -> None:
    store = Store.open(folder.database)
    store.set_name("open")
    assert Mirror(folder, str(tmp_path / "shared")).sync()
    copy = fetch_experiment(str(tmp_path / "shared"), "exp", tmp_path / "there")
    assert copy.database.read_bytes()[18:20] == b"\1\1"  # of a header that names no log
    store.close()


def test_removed_file_takes_the_folders_that_it_leaves_empty_with_it(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "shared"), "exp")
    (tmp_path / "file").write_text("1")
    for name in ("trials/0/file", "trials/1/file"):
        storage.put(tmp_path / "file", name)
    storage.remove("trials/0/file")
    assert [path.name for path in (tmp_path / "shared" / "exp" / "trials").iterdir()] == ["1"]
    storage.remove("trials/1/file")
    assert storage.names() == set()
    assert list((tmp_path / "shared" / "exp").iterdir()) == []


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), "exp")
    with pytest.raises(StorageError, match=r"exp/missing cannot be read: No such file"):
        storage.get("missing", tmp_path / "back")
