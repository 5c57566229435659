"""Storages: files by name, in a folder; what is put, named and fetched is in test_mirror.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from pitchpipe.store import StorageError
from pitchpipe.store.storage import open_storage


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
