"""The examples in docs/reference/assessors.md are true."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "assessors.md"


def test_examples_run() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert (results.failed, results.attempted > 0) == (0, True)
