"""Extras: what is missing or too old, and the command for it."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from importlib.util import find_spec
from types import ModuleType

import pytest

from pitchpipe.protocol import MissingExtraError, install_command, libraries_by_extra, require_extra

VERSION = metadata.version
UI = {library.name: library.requirement for library in libraries_by_extra()["ui"]}


class Refusing:
    """Finds no module of some libraries, however they are installed."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def has_versions(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: versions.get(name) or VERSION(name))


def said(needs: str, extra: str, *names: str) -> str:
    with pytest.raises(MissingExtraError) as raised:
        require_extra(needs, extra, *names)
    return str(raised.value)


def test_nothing_is_said_where_all_is_there() -> None:
    require_extra("the pages need", "ui")


def test_pages_figures_and_reports_are_an_extra_of_their_own() -> None:
    assert UI.keys() == {"fastapi", "jinja2", "nicegui", "plotly", "uvicorn"}
    assert not UI.keys() & {library.name for library in libraries_by_extra()[""]}
    assert {"numpy", "ray", "psutil"} <= {library.name for library in libraries_by_extra()[""]}


def test_modules_of_installed_libraries_are_found_by_the_names_of_the_distributions() -> None:
    developers = {
        "benchmarks",
        "docs",
        "examples",
        "test",
        "test-integrations",
    }  # their tools are not asked for
    extras = libraries_by_extra()
    every = [library for extra in extras.keys() - developers for library in extras[extra]]
    distributions = {_normalized(distribution.name) for distribution in metadata.distributions()}
    installed = [library for library in every if _normalized(library.name) in distributions]
    assert len(installed) > 20
    assert [library.name for library in installed if not library.is_there] == []


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("names", [("plotly",), ("nicegui", "plotly"), tuple(UI)])
def test_command_names_what_is_missing_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)
    wanted = " ".join(f"'{requirement}'" for name, requirement in UI.items() if name in names)
    assert said("the pages need", "ui") == f"the pages need the extra ui: pip install {wanted}"


def test_library_that_a_finder_refuses_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Refusing("plotly"), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError):
        find_spec("plotly")
    assert said("figures need", "ui", "plotly") == f"figures need the extra ui: pip install '{UI['plotly']}'"


def test_old_library_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    has_versions(monkeypatch, nicegui="2.24.1")
    why = "the extra ui (nicegui 2.24.1 is too old)"
    assert said("the pages need", "ui") == f"the pages need {why}: pip install '{UI['nicegui']}'"
    require_extra("figures need", "ui", "plotly")  # which do without it
    monkeypatch.setitem(sys.modules, "plotly", None)
    both = f"'{UI['nicegui']}' '{UI['plotly']}'"
    assert said("the pages need", "ui") == f"the pages need {why}: pip install {both}"


@pytest.mark.parametrize("version", ["99", "99.0.0.dev1+local", "99rc1"])
def test_newer_library_is_welcome(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    has_versions(monkeypatch, nicegui=version)
    require_extra("the pages need", "ui")


def test_bound_itself_is_new_enough_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    least = UI["plotly"].partition(">=")[2]
    for version in (least, f"{least}.0", least.removesuffix(".0")):
        has_versions(monkeypatch, plotly=version)
        require_extra("figures need", "ui", "plotly")


def test_module_that_a_program_made_itself_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", ModuleType("plotly"))
    require_extra("figures need", "ui", "plotly")


def test_where_nothing_is_missing_all_is_installed_anew() -> None:
    wanted = " ".join(f"'{requirement}'" for requirement in UI.values())
    assert install_command("ui") == f"pip install --upgrade {wanted}"


def test_extra_that_there_is_not_is_an_error_of_the_program() -> None:
    with pytest.raises(KeyError, match="iu"):
        require_extra("the pages need", "iu")
