"""The folder of an experiment: its owner, and what is made again where it is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

from pitchpipe.store.folder import ExperimentFolder


def test_owner_finds_a_folder_for_logs_also_when_it_was_deleted(tmp_path: Path) -> None:
    made = ExperimentFolder.create(tmp_path, "exp")
    made.disown()
    shutil.rmtree(made.logs)
    again = ExperimentFolder(made.path)
    again.own()
    assert again.logs.is_dir()
    again.disown()
