"""The error of a trial that fails on a full disk says so, whatever else it says."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.trial_agent import disk


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every write fail, as on a full disk."""

    def refuse(path: Any, *_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(disk, "open", refuse, raising=False)


def test_try_leaves_nothing_behind(tmp_path: Path) -> None:
    assert disk.disk_error(tmp_path) is None
    assert disk.with_disk_error("ValueError: no", tmp_path) == "ValueError: no"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("full")
def test_last_words_say_that_there_is_no_room(tmp_path: Path) -> None:
    why = disk.with_disk_error("cannot save the model", tmp_path)
    assert why is not None
    first, last = why.splitlines()
    assert first == "cannot save the model"
    assert last.startswith("OSError: [Errno 28] No space left on device")
    assert disk.with_disk_error(None, tmp_path) == last
    assert disk.with_disk_error(last, tmp_path) == last  # the error says so already


@pytest.mark.usefixtures("full")
def test_early_line_about_the_disk_does_not_stand_for_the_last_words(tmp_path: Path) -> None:
    early = "No space left on device\nRuntimeError: training failed"
    assert (disk.with_disk_error(early, tmp_path) or "").splitlines()[-1].startswith("OSError: [Errno 28]")


def test_folder_that_cannot_be_used_for_another_reason_is_not_full(tmp_path: Path) -> None:
    assert disk.disk_error(tmp_path / "missing") is None
