"""The examples in the docstrings and on the documentation page run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import pitchpipe.search_space

MODULES = [module.name for module in pkgutil.iter_modules(pitchpipe.search_space.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(f"pitchpipe.search_space.{name}")
    assert doctest.testmod(module).failed == 0


def test_some_examples_were_found() -> None:
    modules = [importlib.import_module(f"pitchpipe.search_space.{name}") for name in MODULES]
    assert sum(doctest.testmod(module).attempted for module in modules) >= 15


def test_the_examples_of_the_page_run() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "search_space.md"
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.failed == 0
    assert outcome.attempted >= 10


def test_the_public_names_are_there() -> None:
    assert [
        name for name in pitchpipe.search_space.__all__ if not hasattr(pitchpipe.search_space, name)
    ] == []
