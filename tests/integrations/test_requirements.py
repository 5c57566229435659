"""A library that an adapter needs: found, too old, or missing, with the command that mends it."""

import sys
from pathlib import Path

import pytest

from pitchpipe.integrations.requirements import required


def write_library(folder: Path, source: str) -> None:
    (folder / "made_up_library.py").write_text(source)


@pytest.fixture(autouse=True)
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "made_up_library", raising=False)


@pytest.mark.parametrize("version", ["2.1", "2.1.0.dev3+cpu", "2.10rc1", "3"])
def test_library_that_is_new_enough_is_returned(tmp_path: Path, version: str) -> None:
    write_library(tmp_path, f"__version__ = '{version}'")
    assert required("made_up_library", "2.1").__name__ == "made_up_library"


@pytest.mark.parametrize("version", ["2.0.9", "1.99", "0"])
def test_library_that_is_too_old_is_named_with_the_command(tmp_path: Path, version: str) -> None:
    write_library(tmp_path, f"__version__ = '{version}'")
    with pytest.raises(ImportError) as raised:
        required("made_up_library", "2.1", "extra")
    assert str(raised.value) == (
        f"pitchpipe.integrations needs made_up_library 2.1 or newer, and {version} is installed:"
        ' pip install --upgrade "pitchpipe[extra]"'
    )


def test_library_that_is_too_old_to_have_the_module_is_too_old(tmp_path: Path) -> None:
    write_library(tmp_path, "__version__ = '2.0'")
    with pytest.raises(
        ImportError, match=r"needs made_up_library 2\.1 or newer, and 2\.0 is installed: pip install"
    ):
        required("made_up_library.inner", "2.1")


def test_library_that_is_missing_is_named_with_the_command() -> None:
    with pytest.raises(ImportError) as raised:
        required("made_up_library.inner", "2.1")
    assert str(raised.value) == (
        "pitchpipe.integrations needs made_up_library, which is not installed:"
        ' pip install --upgrade "pitchpipe[made_up_library]"'
    )


def test_library_that_lacks_another_says_so_itself(tmp_path: Path) -> None:
    write_library(tmp_path, "import another_made_up_library")
    with pytest.raises(ModuleNotFoundError, match="another_made_up_library"):
        required("made_up_library", "2.1")


def test_library_that_fails_with_this_python_is_named_with_the_command(tmp_path: Path) -> None:
    write_library(tmp_path, "raise ValueError('mutable default')")
    with pytest.raises(ImportError) as raised:
        required("made_up_library", "2.1")
    assert str(raised.value) == (
        "pitchpipe.integrations needs made_up_library 2.1 or newer, and this one cannot be imported"
        ' (ValueError: mutable default): pip install --upgrade "pitchpipe[made_up_library]"'
    )
