"""NaN, infinities, large numbers and half characters: one rule for each format, in every writer."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.results import result_of
from pitchpipe.store.reading.exporting import csv_lines, json_lines
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial, counted_steps

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


READERS: dict[str, Callable[[ExperimentView], object]] = {
    "csv": lambda view: b"".join(csv_lines(view)),
    "json": lambda view: b"".join(json_lines(view)),
    "check": ExperimentView.check,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_reading_every_trial_costs_twice_as_much_for_twice_as_many(
    tmp_path: Path, read: Callable[[ExperimentView], object]
) -> None:
    costs = []
    for count in (1500, 3000):
        made = MadeExperiment(tmp_path / f"of-{count}")
        made.commit(*(a_trial(number, value=number / 10) for number in range(count)))
        made.store.close()
        with counted_steps() as steps, ExperimentView(made.folder) as view:
            read(view)
        costs.append(len(steps))
    assert costs[1] <= 2.05 * costs[0]


def test_trials_of_any_number_are_exported_once(made: MadeExperiment) -> None:
    numbers = [*range(0, 3000, 3), 5_000_000]
    made.commit(*(a_trial(number, value=0.5) for number in numbers))
    with ExperimentView(made.folder) as view:
        rows = csv.DictReader(io.StringIO(b"".join(csv_lines(view)).decode()))
        assert [int(row["sequence_id"]) for row in rows] == numbers
        assert [trial["sequence_id"] for trial in json.loads(b"".join(json_lines(view)))["trials"]] == numbers
