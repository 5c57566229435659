"""What users read about search spaces, points and constraints: each input is a Python expression, or a constraint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from pitchpipe.search_space import SearchSpace, SearchSpaceError, check

from ..sentences import SentencesFile, answered

SPACE: dict[str, Any] = {
    "low": {"_type": "randint", "_value": [0, 10]},
    "high": {"_type": "randint", "_value": [0, 10]},
    "batch-size": {"_type": "choice", "_value": [16, 32]},
    "lambda": {"_type": "uniform", "_value": [0, 1]},
    "lr": {"_type": "loguniform", "_value": [1e-5, 1.0]},
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "Empty"},
            {"_name": "Conv", "kernel": {"_type": "choice", "_value": [1, 3, 5]}},
            {"_name": "Pool", "kernel": {"_type": "randint", "_value": [2, 6]}},
        ],
    },
}
POINT = {"low": 1, "high": 2, "batch-size": 16, "lambda": 0.5, "lr": 0.1, "layer": {"_name": "Empty"}}


def spec(type_name: Any, *values: Any) -> dict[str, Any]:
    return {"_type": type_name, "_value": list(values)}


def value_of(line: str) -> Any:
    return eval(line, {"spec": spec, "inf": math.inf, "nan": math.nan, "np": np})


def problems_of_space(space: Any, constraints: Sequence[Any] = ()) -> list[str]:
    return [str(problem) for problem in check(space, constraints)]


def problems_of_change(line: str) -> list[str]:
    """Return what is wrong with a changed point; a parameter that becomes `...` is left out."""
    return problems_of_point(
        {key: value for key, value in {**POINT, **value_of(line)}.items() if value is not ...}
    )


def problems_of_point(point: Any) -> list[str]:
    space = SearchSpace.parse(SPACE)
    with pytest.raises(SearchSpaceError) as error:
        space.encode(point)
    assert error.value.problems == tuple(space.validate(point))
    return [str(problem) for problem in error.value.problems]


SECTIONS = {
    "spaces": lambda line: problems_of_space(value_of(line)),
    "a parameter x": lambda line: problems_of_space({"x": value_of(line)}),
    "changes of a point": problems_of_change,
    "points": lambda line: problems_of_point(value_of(line)),
    "constraints": lambda line: problems_of_space(SPACE, [line]),
    "constraints that are no text": lambda line: problems_of_space(SPACE, [value_of(line)]),
}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    assert answered(Path(__file__).parent, SECTIONS) == snapshot(extension_class=SentencesFile)
