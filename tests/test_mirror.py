"""The tests of the rooms with the state of an experiment mirror their modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# Modules without a test file of their own, each with the file that tests it.
ELSEWHERE = {
    "executors/running_attempts.py": "test_agents.py",
    "store/table_rows.py": "test_store.py",
}


def has_behaviour(module: Path) -> bool:
    """Return whether a module defines a function or a class."""
    return re.search(r"^(async def|def|class) ", module.read_text(encoding="utf-8"), re.MULTILINE) is not None


def without_test_file(tree: Path, room: str) -> list[str]:
    """Return the modules of a room that have behaviour and no `test_<module>.py` in the mirrored folder."""
    modules = (module.relative_to(tree) for module in sorted((tree / room).rglob("*.py")))
    return [
        str(module)
        for module in modules
        if has_behaviour(tree / module)
        and not (tree / "tests" / module.parent / f"test_{module.name}").exists()
    ]


@pytest.mark.parametrize("room", ["runner", "store", "executors"])
def test_every_module_has_its_test_file(tree: Path, room: str) -> None:
    expected = [module for module in ELSEWHERE if module.startswith(f"{room}/")]
    assert without_test_file(tree, room) == expected
    assert all((tree / "tests" / room / ELSEWHERE[module]).exists() for module in expected)


def test_module_without_test_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "store" / "reading").mkdir(parents=True)
    (tmp_path / "store" / "reading" / "words.py").write_text("def f(): ...\n")
    (tmp_path / "store" / "names.py").write_text("NAMES = ('a',)\n")
    assert without_test_file(tmp_path, "store") == ["store/reading/words.py"]
    test = tmp_path / "tests" / "store" / "reading" / "test_words.py"
    test.parent.mkdir(parents=True)
    test.touch()
    assert without_test_file(tmp_path, "store") == []
