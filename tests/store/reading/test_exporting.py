"""NaN, infinities, large numbers and half characters: one rule for each format, in every writer."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import pytest

from pitchpipe.results import result_of
from pitchpipe.store.reading.exporting import csv_lines, json_lines
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial

NAN, INF = math.nan, math.inf
# (reported, in Python, in JSON, in CSV)
RULES = [
    (NAN, NAN, None, ""),
    (INF, INF, None, "inf"),
    (-INF, -INF, None, "-inf"),
    (1e308, 1e308, 1e308, "1e+308"),
    (2**70, 2**70, 2**70, str(2**70)),
    ("\ud800x", "\\ud800x", "\\ud800x", "\\ud800x"),
    ([NAN, INF, 1.0], [NAN, INF, 1.0], [None, None, 1.0], "[NaN, Infinity, 1.0]"),
]


@pytest.fixture(params=RULES, ids=lambda rule: repr(rule[0]))
def rule(request: pytest.FixtureRequest, made: MadeExperiment) -> tuple[Any, Any, Any, str]:
    """One of the rules; the experiment has a trial with that value as a parameter and in its final result."""
    reported = request.param[0]
    final = json.dumps({"default": 0.5, "more": reported})
    made.commit(a_trial(0, parameters={"x": reported}, final=final, values=(0.5,)))
    return request.param


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_json_is_strict(made: MadeExperiment, rule: tuple[Any, Any, Any, str]) -> None:
    with ExperimentView(made.folder) as view:
        text = b"".join(json_lines(view)).decode()
    (trial,) = json.loads(text, parse_constant=refuse)["trials"]
    assert (trial["parameters"]["x"], trial["final"]["more"]) == (rule[2], rule[2])


def test_csv_has_numbers_as_pandas_writes_them_and_lists_as_json(
    made: MadeExperiment, rule: tuple[Any, Any, Any, str]
) -> None:
    with ExperimentView(made.folder) as view:
        text = b"".join(csv_lines(view)).decode()
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["x"], row["final.more"]) == (rule[3], rule[3])


def test_python_has_the_numbers_themselves(made: MadeExperiment, rule: tuple[Any, Any, Any, str]) -> None:
    (row,) = result_of(made.folder.path).trials
    assert repr((row["parameters"]["x"], row["final"]["more"])) == repr((rule[1], rule[1]))
