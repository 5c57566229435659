"""The folder of an experiment: its owner, and what is made again where it is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pitchpipe.store.folder import ExperimentFolder, FolderError


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


def test_folder_has_one_owner_at_a_time(tmp_path: Path) -> None:
    folder, other = ExperimentFolder.create(tmp_path, "exp"), ExperimentFolder(tmp_path / "exp")
    with pytest.raises(FolderError):
        other.own()
    folder.disown()
    other.own()
    other.disown()


def test_manager_that_has_ended_counts_as_none(tmp_path: Path) -> None:
    folder = ExperimentFolder.create(tmp_path, "exp")
    note = json.loads((folder.path / "manager.json").read_text())
    who = folder.manager()
    assert who is not None
    assert who.pid == os.getpid()
    folder.disown()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (folder.path / "manager.json").write_text(json.dumps({**note, "pid": ended.pid}))
    assert folder.manager() is None
