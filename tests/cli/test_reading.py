"""What holds for all verbs that read."""

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Call, Start, Storing, make_trial

HALF = "\ud800"  # half a character: JSON can hold it, UTF-8 cannot


def test_reading_changes_nothing(three: list[Any], directory: Path, call: Call) -> None:
    database = directory / "first" / "experiment.db"
    before = database.read_bytes()
    for words in [("list",), ("status", "first"), ("trials", "first"), ("export", "first")]:
        assert call(*words).code == 0
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        ("export", "exp"),
        ("export", "exp", "--format", "csv"),
        ("trials", "exp"),
        ("trial", "show", "0", "--experiment-id", "exp"),
        ("trial", "show", "0", "--experiment-id", "exp", "--json"),
        ("status", "exp"),
    ],
    ids=" ".join,
)
def test_half_a_character_is_shown_by_its_escape(
    words: tuple[str, ...], stored: Storing, start: Start
) -> None:
    final = {"default": 0.5, "note": HALF}
    trial = make_trial(0, "SUCCEEDED", {"x": HALF}, final, values=(0.5,))
    stored().write("exp", [trial])
    called = start(*words).finish()
    assert (called.code, called.err) == (0, "")
    assert "\\ud800" in called.out


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_half_a_character_is_exported_into_a_file(
    ending: str, tmp_path: Path, stored: Storing, call: Call
) -> None:
    stored().write("exp", [make_trial(0, "SUCCEEDED", {"x": HALF}, 0.5)])
    file = tmp_path / f"trials.{ending}"
    assert call("export", "exp", "-o", file).code == 0
    if ending == "json":
        assert json.loads(file.read_text())["trials"][0]["parameters"] == {"x": "\\ud800"}
    else:
        assert "\\ud800" in file.read_text()
