"""A snapshot of the code: small files are copied, data is linked, and a folder that is too large is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pitchpipe.manager import code_snapshot as module
from pitchpipe.manager.code_snapshot import take_snapshot
from pitchpipe.store.paths import FolderError


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "parts").mkdir(parents=True)
    (folder / "train.py").write_text("x = 1")
    (folder / "parts" / "model.py").write_text("y = 1")
    return folder


def test_what_changes_later_is_not_in_it(code: Path, tmp_path: Path) -> None:
    script = code / "train.py"
    script.chmod(0o755)
    target = tmp_path / "snapshot"
    take_snapshot(code, target)
    script.write_text("x = 2")
    (code / "parts" / "model.py").unlink()
    assert (target / "train.py").read_text() == "x = 1"
    assert os.access(target / "train.py", os.X_OK)
    assert (target / "parts" / "model.py").read_text() == "y = 1"


def test_data_and_folders_without_code_are_linked(code: Path, tmp_path: Path) -> None:
    with (code / "data.bin").open("wb") as file:
        file.truncate(2 << 20)
    for name in (".git", ".venv", "images", "__pycache__"):
        (code / name).mkdir()
        (code / name / "file").write_text(name)
    (code / "parts" / "cache.txt").write_text("1")
    (code / ".pitchpipeignore").write_text("# no code\nimages/\n\nparts/*.txt\n")
    target = tmp_path / "snapshot"
    take_snapshot(code, target)
    linked = {".git", ".venv", "images", "data.bin", "parts/cache.txt"}
    assert {name for name in linked if (target / name).is_symlink()} == linked
    assert (target / "images" / "file").read_text() == "images"
    assert not (target / "__pycache__").exists()


def test_folder_of_the_experiment_is_not_copied_into_itself(code: Path) -> None:
    target = code / "runs" / "exp" / "code"
    target.parent.mkdir(parents=True)
    take_snapshot(code, target)
    assert (target / "runs").is_symlink()
    assert (target / "train.py").read_text() == "x = 1"


def test_code_behind_a_link_does_not_change(code: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text("z = 1")
    (tmp_path / "data").mkdir()
    links = {
        "link.py": "train.py",
        "shared.py": "../shared.py",
        "again": "parts",
        "data": "../data",
        "broken": "no",
    }
    for name, to in links.items():
        (code / name).symlink_to(to)
    target = tmp_path / "snapshot"
    take_snapshot(code, target)
    for path in (code / "train.py", code / "parts" / "model.py", tmp_path / "shared.py"):
        path.write_text("changed")
    assert (target / "link.py").read_text() == "x = 1"
    assert (target / "shared.py").read_text() == "z = 1"
    assert (target / "again" / "model.py").read_text() == "y = 1"
    assert (target / "data").resolve() == tmp_path / "data"
    assert (target / "broken").is_symlink()


def test_code_directory_behind_a_link(code: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(code)
    target = code / "runs" / "exp" / "code"
    target.parent.mkdir(parents=True)
    take_snapshot(tmp_path / "link", target)
    assert (target / "runs").is_symlink()
    assert (target / "train.py").read_text() == "x = 1"


@pytest.mark.parametrize(("limit", "value"), [("_MOST_FILES", 1), ("_MOST_BYTES", 7)])
def test_too_much_is_refused(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(module, limit, value)
    with pytest.raises(FolderError, match=r"\.pitchpipeignore"):
        take_snapshot(code, tmp_path / "snapshot")


def test_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="/gone: No such file"):
        take_snapshot(tmp_path / "gone", tmp_path / "snapshot")
