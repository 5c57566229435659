"""Notes and tags, in their file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pitchpipe.store import Annotation, Annotations, ExperimentFolder, StoreError


@pytest.fixture
def annotations(tmp_path: Path) -> Annotations:
    return Annotations(ExperimentFolder(tmp_path))


def test_notes_written_at_once_are_all_kept(annotations: Annotations) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: annotations.write(number, Annotation(f"note {number}")), range(20)))
    assert {number: one.note for number, one in annotations.all().items()} == {
        number: f"note {number}" for number in range(20)
    }
    annotations.write(3, Annotation())
    assert 3 not in annotations.all()


def test_too_much_is_refused_and_what_was_there_stays(annotations: Annotations) -> None:
    annotations.write(None, Annotation("first", ("a",)))
    for refused in (
        Annotation("x" * 20_001),
        Annotation(tags=("y" * 61,)),
        Annotation(tags=tuple(map(str, range(31)))),
    ):
        with pytest.raises(ValueError, match="at most"):
            annotations.write(None, refused)
    assert annotations.read(None) == Annotation("first", ("a",))
    most = Annotation("x" * 20_000, tuple(f"{number:060}" for number in range(30)))
    annotations.write(None, most)
    assert annotations.read(None) == most


def test_damaged_file_is_named_and_not_overwritten(annotations: Annotations, tmp_path: Path) -> None:
    (tmp_path / "annotations.json").write_text("[1]")
    with pytest.raises(StoreError, match=r"annotations\.json cannot be read"):
        annotations.write(1, Annotation("lost?"))
    assert (tmp_path / "annotations.json").read_text() == "[1]"
