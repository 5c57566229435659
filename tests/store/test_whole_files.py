"""A file that is written is complete, or as it was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from pitchpipe.store import whole_file


def test_file_is_replaced_when_it_is_complete(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"old")
    with whole_file(tmp_path / "x.csv") as file:
        file.write(b"new")
        assert (tmp_path / "x.csv").read_bytes() == b"old"
    with pytest.raises(KeyError), whole_file(tmp_path / "x.csv") as file:
        file.write({}[file.write(b"half")])
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x.csv", b"new")]


@pytest.mark.parametrize("place", ["file/x.csv", "missing/x.csv", "folder"])
def test_error_names_the_file_that_was_asked_for(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with pytest.raises(OSError, match=f"'{tmp_path}/{place}'$"), whole_file(tmp_path / place) as file:
        file.write(b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
