"""Clones of checkpoints: whole or not at all, at no cost, and on the disk where the experiment asks for it."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.sdk import remove
from pitchpipe.store import clone_checkpoint


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "trials" / "0" / "checkpoints" / "1-1"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "weights").write_text("weights")
    (folder / "latest").symlink_to("inner/weights")
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "trials" / "1" / "checkpoints" / "0-1"


def test_clone_shares_its_files_with_the_original(source: Path, target: Path) -> None:
    clone_checkpoint(source, target)
    assert (target / "inner" / "weights").samefile(source / "inner" / "weights")
    assert os.readlink(target / "latest") == "inner/weights"
    assert os.listdir(target.parent) == ["0-1"]


def test_files_are_copied_where_there_are_no_hard_links(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuses)
    clone_checkpoint(source, target)
    assert (target / "inner" / "weights").read_text() == "weights"
    assert not (target / "inner" / "weights").samefile(source / "inner" / "weights")


def test_clone_that_is_there_already_stays_as_it_is(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    clone_checkpoint(source, target)
    assert os.listdir(target) == []


def test_source_that_is_gone_is_logged_and_leaves_nothing(
    tmp_path: Path, target: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        clone_checkpoint(tmp_path / "gone", target)
    assert "gone cannot be copied to" in caplog.text
    assert os.listdir(target.parent) == []


def test_source_that_is_removed_while_it_is_cloned_leaves_nothing(
    source: Path, target: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that was listed when its files were gone already looks like one without files."""
    scan = os.scandir

    def scan_after_the_removal(path: Any) -> Any:
        if path == source:
            remove(str(source))
            return scan(target.parent)  # no entries
        return scan(path)

    with caplog.at_level(logging.ERROR), monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scan_after_the_removal)
        clone_checkpoint(source, target)
    assert "cannot be copied to" in caplog.text
    assert not target.exists()


@pytest.mark.parametrize("synced", [False, True])
def test_clone_is_on_the_disk_before_it_has_its_name_if_the_experiment_asks_for_it(
    synced: bool, source: Path, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []

    def fsync(descriptor: int) -> None:
        log.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path))

    monkeypatch.setattr(os, "fsync", fsync)
    clone_checkpoint(source, target, tmp_path if synced else None)
    partial = f"trials/1/checkpoints/.0-1.{os.getpid()}"
    there = ["trials/1/checkpoints/0-1", "trials/1/checkpoints", "trials/1", "trials", "."]
    assert log == ([f"{partial}/inner/weights", f"{partial}/inner", partial, *there] if synced else [])
