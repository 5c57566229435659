"""The examples and the defaults in docs/reference/tuners.md and in the page of each tuner are true."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from pitchpipe import tuners
from pitchpipe.tuners.registry import REGISTRY
from pitchpipe.tuners.tpe import DEFAULTS

DOCS = Path(__file__).parents[2] / "docs" / "reference"
INDEX = DOCS / "tuners.md"


def page_of(name: str) -> str:
    """Return the page of one tuner."""
    return (DOCS / "tuners" / f"{name.lower()}.md").read_text(encoding="utf-8")


def test_examples_run() -> None:
    results = doctest.testfile(str(INDEX), module_relative=False)
    assert (results.failed, results.attempted > 0) == (0, True)


def test_every_built_in_has_its_row() -> None:
    overview = INDEX.read_text(encoding="utf-8").split("## From Python")[0]
    rows = dict(re.findall(r"^\| \[`(\w+)`\]\((tuners/\w+\.md)\) \|", overview, re.MULTILINE))
    assert rows == {name: f"tuners/{name.lower()}.md" for name in REGISTRY.built_in}
    assert {path.name for path in (DOCS / "tuners").iterdir()} == {Path(page).name for page in rows.values()}


@pytest.mark.parametrize("name", sorted(REGISTRY.built_in))
def test_page_of_a_tuner_is_titled_by_its_name(name: str) -> None:
    assert page_of(name).startswith(f"# {name}\n")


def test_defaults_of_tpe() -> None:
    documented = dict(re.findall(r"^\| `(\w+)` \| `?([\w.]+)`? \|", page_of("TPE"), re.M))
    assert {key: documented.get(key) for key in DEFAULTS} == {
        key: str(value) for key, value in DEFAULTS.items()
    }


def as_documented(default: Any) -> str:
    """Return a default as the page writes it."""
    return "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


# Others write their defaults in words, have no arguments, or an object of them.
OTHERWISE = {"Auto", "Batch", "BOHB", "DEHB", "TPE"}


@pytest.mark.parametrize("name", sorted(set(REGISTRY.built_in) - OTHERWISE))
def test_arguments_and_defaults(name: str) -> None:
    documented = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \|", page_of(name), re.MULTILINE))
    parameters = inspect.signature(tuners.find(name)).parameters.values()
    assert documented == {parameter.name: as_documented(parameter.default) for parameter in parameters}
