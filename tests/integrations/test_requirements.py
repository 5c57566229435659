"""A library that an adapter needs: found, too old, or missing, with the command that mends it."""

import re
import sys
from pathlib import Path

import pytest

from pitchpipe.integrations import requirements
from pitchpipe.integrations.requirements import required
from pitchpipe.protocol import libraries_by_extra


@pytest.fixture(autouse=True)
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "made_up_library", raising=False)


@pytest.mark.parametrize("version", ["2.1", "2.1.0.dev3+cpu", "2.10rc1", "3"])
def test_library_that_is_new_enough_is_returned(tmp_path: Path, version: str) -> None:
    (tmp_path / "made_up_library.py").write_text(f"__version__ = '{version}'")
    assert required("made_up_library", "2.1").__name__ == "made_up_library"


@pytest.mark.parametrize(
    ("source", "module", "why"),
    [
        ("__version__ = '2.0.9'", "", " 2.1 or newer, and 2.0.9 is installed"),
        ("__version__ = '1.99'", "", " 2.1 or newer, and 1.99 is installed"),
        ("__version__ = '0'", "", " 2.1 or newer, and 0 is installed"),
        ("__version__ = '2.0'", ".inner", " 2.1 or newer, and 2.0 is installed"),  # too old to have it
        (None, ".inner", ", which is not installed"),
        (
            "raise ValueError('mutable default')",
            "",
            " 2.1 or newer, and this one cannot be imported (ValueError: mutable default)",
        ),
    ],
)
def test_library_that_cannot_be_used_is_named_with_the_command(
    tmp_path: Path, source: str | None, module: str, why: str
) -> None:
    if source is not None:
        (tmp_path / "made_up_library.py").write_text(source)
    with pytest.raises(ImportError) as raised:
        required(f"made_up_library{module}", "2.1", "pandas")
    command = "pip install --upgrade 'pandas>=2.2'"  # what the extra brings, which is there
    assert str(raised.value) == f"pitchpipe.integrations needs made_up_library{why}: {command}"


def test_adapters_name_extras_that_there_are() -> None:
    call = re.compile(r'\brequired\("(\w+)[\w.]*", "[\d.]+"(?:, "(\w+)")?\)')
    own = Path(requirements.__file__)
    adapters = [file.read_text() for file in own.parent.glob("*.py") if file != own]
    named = {extra or name for adapter in adapters for name, extra in call.findall(adapter)}
    assert {"sklearn", "tensorboard", "hydra"} <= named <= libraries_by_extra().keys()


def test_library_that_lacks_another_says_so_itself(tmp_path: Path) -> None:
    (tmp_path / "made_up_library.py").write_text("import another_made_up_library")
    with pytest.raises(ModuleNotFoundError, match="another_made_up_library"):
        required("made_up_library", "2.1")
