"""The examples and the defaults in docs/tuners.md are true."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from pitchpipe import tuners
from pitchpipe.tuners.tpe import DEFAULTS

PAGE = Path(__file__).parents[2] / "docs" / "tuners.md"


def test_examples_run() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert (results.failed, results.attempted > 0) == (0, True)


def test_every_built_in_has_its_row() -> None:
    overview = PAGE.read_text(encoding="utf-8").split("From Python")[0]
    rows = re.findall(r"^\| `(\w+)` \|", overview, re.MULTILINE)
    assert sorted(rows) == sorted(tuners.REGISTRY.built_in)


def test_defaults_of_tpe() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## TPE\n")[1].split("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| `?([\w.]+)`? \|", section, re.M))
    assert {key: told.get(key) for key in DEFAULTS} == {key: str(value) for key, value in DEFAULTS.items()}


def as_told(default: Any) -> str:
    """Return how the page writes a default."""
    return "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


# Others write their defaults in words, have no arguments, or an object of them.
OTHERWISE = {"Auto", "Batch", "BOHB", "DEHB", "TPE"}


@pytest.mark.parametrize("name", sorted(set(tuners.REGISTRY.built_in) - OTHERWISE))
def test_arguments_and_defaults(name: str) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"## {name}\n")[1].split("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \|", section, re.MULTILINE))
    parameters = inspect.signature(tuners.find(name)).parameters.values()
    assert told == {parameter.name: as_told(parameter.default) for parameter in parameters}
