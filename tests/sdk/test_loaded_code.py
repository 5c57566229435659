"""What a process has loaded: the user's files alone, as they were when it loaded them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pitchpipe.sdk.loaded_code import MAX_NAMES, LoadedCode, file_digest, merged_code


def loads(monkeypatch: pytest.MonkeyPatch, name: str, **attributes: object) -> None:
    """Make this process look as if it had loaded a module."""
    module = ModuleType(name)
    vars(module).update(attributes)
    monkeypatch.setitem(sys.modules, name, module)


def written(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_only_files_of_the_user_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tmp_path / "code"
    files = {
        "own": code / "parts" / "own.py",
        "installed": code / ".venv/lib/python3/site-packages/installed.py",
        "elsewhere": tmp_path / "elsewhere.py",
    }
    for name, path in files.items():
        loads(monkeypatch, name, __file__=written(path, "x = 1"))
    loads(monkeypatch, "vanished", __file__=str(code / "vanished.py"))
    news = LoadedCode(str(code)).news()
    assert news is not None
    assert news["files"] == {"parts/own.py": file_digest(str(files["own"]))}


def test_directory_behind_a_link_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch, "own", __file__=written(tmp_path / "real" / "own.py", "x = 1"))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    news = LoadedCode(str(tmp_path / "link")).news()
    assert news is not None
    assert list(news["files"]) == ["own.py"]


def test_what_was_loaded_counts_although_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.py"
    loads(monkeypatch, "own", __file__=written(path, "x = 1"))
    before = file_digest(str(path))
    loaded = LoadedCode(str(tmp_path))
    loaded.look()
    path.write_text("x = 2")
    loads(monkeypatch, "later", __file__=written(tmp_path / "later.py", "y = 1"))
    news = loaded.news()
    assert news is not None
    assert news["files"]["own.py"] == before
    assert "later.py" in news["files"]
    assert loaded.news() is None


def test_packages_have_versions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads(monkeypatch, "numbers_of", __version__="2.1.0")
    loads(monkeypatch, "numbers_of.inner", __version__="9")
    loads(monkeypatch, "odd", __version__=(1, 2))
    monkeypatch.setitem(sys.modules, "none", None)
    news = LoadedCode(str(tmp_path)).news()
    assert news is not None
    packages = news["packages"]
    assert packages["numbers_of"] == "2.1.0"
    assert packages["python"] == sys.version.split()[0]
    assert not {"numbers_of.inner", "odd", "none", "json"} & set(packages)


def test_module_that_loads_itself_when_used_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Eager(ModuleType):
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(f"{name} was asked for")

    monkeypatch.setitem(sys.modules, "eager", Eager("eager"))
    assert LoadedCode(str(tmp_path)).news() is not None


def test_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MAX_NAMES + 10):
        loads(monkeypatch, f"own{number}", __file__=written(tmp_path / f"own{number}.py", "x"))
    news = LoadedCode(str(tmp_path)).news()
    assert news is not None
    assert len(news["files"]) == MAX_NAMES


def test_large_file_differs_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    with path.open("wb") as file:
        file.truncate(10 << 20)
    first = file_digest(str(path))
    with path.open("ab") as file:
        file.write(b"1")
    assert first != file_digest(str(path))


def test_name_that_is_not_text_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (b"d\xe4ta.py", b"tab\t.py"):
        path = os.fsdecode(os.path.join(os.fsencode(tmp_path), name))
        Path(path).write_text("x = 1")
        loads(monkeypatch, f"own{name!r}", __file__=path)
    news = LoadedCode(str(tmp_path)).news()
    assert news is not None
    assert news["files"] == {}


def test_facts_of_other_programs_are_checked() -> None:
    odd = {
        "files": {1: "a", "b": 2, "c" * 1000: "x", "\udce4": "03", "d": "04"},
        "packages": ["numpy"],
        "more": {},
    }
    assert merged_code([odd]) == {"files": {"d": "04"}, "packages": {}}


def test_working_directory_that_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    loads(monkeypatch, "own", __file__="own.py")
    news = LoadedCode(".").news()
    assert news is not None
    assert news["files"] == {}
