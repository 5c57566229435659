"""The examples in the docstrings and on the documentation page run."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_the_examples_of_the_page_run() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "search_space.md"
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.failed == 0
    assert outcome.attempted >= 10
