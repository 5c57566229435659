"""Log files are read in pieces, and nothing outside their folder is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.store.reading.log_files import NoSuchFile, read_piece, read_tail
from pitchpipe.store.reading.view import ExperimentView, Follow

from ...stored import MadeExperiment


def test_logs_are_read_in_pieces_and_from_their_end(made: MadeExperiment, view: ExperimentView) -> None:
    (made.folder.logs / "manager.log").write_text("one\ntwö\nthree\n")
    assert [file.name for file in view.logs()] == ["manager.log"]
    assert view.log("manager.log", Follow(lines=2)).text == "twö\nthree\n"
    piece = view.log("manager.log", Follow(offset=4, limit=3))  # the ö has two bytes, of which one is there
    assert (piece.text, piece.next_offset) == ("tw", 6)
    assert view.log("manager.log", Follow(offset=piece.next_offset)).text == "ö\nthree\n"
    assert view.log("manager.log", Follow(offset=10**9)).text == ""


def test_end_of_a_long_file_is_its_last_bytes(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    path.write_text("".join(f"line {number}\n" for number in range(100)))
    tail = read_tail(path, lines=9, most_bytes=20)
    assert tail.text.endswith("\nline 98\nline 99\n")
    assert (tail.next_offset, len(tail.text)) == (path.stat().st_size, 20)


@pytest.mark.parametrize(
    "name", ["../experiment.db", "..", ".", "", "/etc/passwd", "a\0b", "link", "folder", "pipe"]
)
def test_nothing_but_the_files_of_the_folder_is_read(
    made: MadeExperiment, view: ExperimentView, name: str
) -> None:
    (made.folder.logs / "link").symlink_to("/etc/passwd")
    (made.folder.logs / "folder").mkdir()
    os.mkfifo(made.folder.logs / "pipe")
    with pytest.raises(NoSuchFile):
        view.log(name)
    with pytest.raises(LookupError):
        view.trial_log(0, name)


@given(st.text(max_size=20), st.integers(1, 7))
def test_pieces_make_the_whole(tmp_path_factory: pytest.TempPathFactory, text: str, limit: int) -> None:
    path = tmp_path_factory.getbasetemp() / "pieces"
    path.write_bytes(text.encode())
    found, offset = "", 0
    while (piece := read_piece(path, offset, max(4, limit))).next_offset > offset:
        found, offset = found + piece.text, piece.next_offset
    assert found == text
