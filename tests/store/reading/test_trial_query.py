"""Trials are filtered, sorted and paged, and no text gets into the SQL; refused conditions: test_sentences.txt."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.protocol import dumps
from pitchpipe.store import Annotation, Annotations
from pitchpipe.store.reading.json_values import sql_json
from pitchpipe.store.reading.trial_query import Condition, QueryError, TrialQuery
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial, results


def numbers(view: ExperimentView, **asked: object) -> list[int]:
    return [trial["sequence_id"] for trial in view.trials(TrialQuery(**asked)).trials]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"descending": True}, [4, 3, 2, 1, 0]),
        ({"sort": "value"}, [1, 3, 0, 2, 4]),
        ({"sort": "value", "descending": True}, [0, 3, 1, 2, 4]),
        ({"sort": "value.default", "offset": 1, "limit": 2}, [3, 0]),
        ({"sort": "parameters.lr", "descending": True}, [4, 2, 1, 3, 0]),
        ({"sort": "last"}, [3, 0, 1, 2, 4]),
        ({"sort": "intermediate_results", "descending": True}, [4, 3, 0, 1, 2]),
        ({"statuses": ["SUCCEEDED"]}, [0, 1, 3]),
        ({"kinds": ["USER_ERROR"]}, [2]),
        ({"search": "keyerror"}, [2]),
        ({"search": "T0003"}, [3]),
        ({"search": "4"}, [3, 4]),  # a number, and what has it in its parameters
        ({"limit": 0}, []),
    ],
)
def test_trials_are_filtered_sorted_and_paged(
    filled: MadeExperiment, view: ExperimentView, asked: dict[str, object], expected: list[int]
) -> None:
    assert numbers(view, **asked) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("parameters.lr<0.1", [0, 3]),
        ("parameters.units = 32", [3]),
        ("parameters.model.depth >= 4", [3]),
        ('parameters["model.depth"] >= 4', [3]),
        ("parameters['units'] = 32", [3]),
        ("parameters.model.a.b = 1", []),
        ("value <= 0.3", [1, 3]),
        ("value = null", [2, 4]),
        ("reason ~ KEY", [2]),
        ("status != SUCCEEDED", [2, 4]),
        ("status = failed", [2]),
        ("kind = user_error", [2]),
        ("reason = 'a, b'", []),
        ("duration > 9", [0, 1, 2, 3, 4]),
    ],
)
def test_conditions_compare_fields(
    filled: MadeExperiment, view: ExperimentView, condition: str, expected: list[int]
) -> None:
    assert numbers(view, conditions=[Condition.parse(condition)]) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("tags = odd", [1, 3]),
        ("tags != odd", [0, 2, 4]),
        ("tags ~ BASE", [1]),
        ("tags = base", []),
        ("tags = null", [0, 2, 4]),
        ("tags != null and value <= 0.3", [1, 3]),
        ("note ~ again", [2]),
        ("note = null", [0, 1, 3, 4]),
    ],
)
def test_conditions_find_tags_and_notes(
    filled: MadeExperiment, view: ExperimentView, condition: str, expected: list[int]
) -> None:
    annotations = Annotations(view.folder)
    annotations.write(None, Annotation(tags=("base",)))
    annotations.write(1, Annotation(tags=("odd", "baseline")))
    annotations.write(2, Annotation("look at this again"))
    annotations.write(3, Annotation(tags=("odd",)))
    assert numbers(view, conditions=Condition.parse_all(condition)) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("final.loss < 0.5", [1]),
        ("final.loss > 0.5", [2, 4]),
        ("final.loss > 'a'", [3, 5, 7]),  # a boolean and an object are their JSON text
        ("final.loss = 9e999", [4]),
        ("final.loss = null", [0, 8]),
        ("final.loss = true", [5]),
        ("final.loss = 1", []),
        ("final.loss = [1, 2]", [6]),
        ("final.loss > 18446744073709551616", [2, 4]),
        ("final.default = 0.7", [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("final.loss.deep = 3", [7]),
        ("final.a.b = 2", [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("parameters.flag = true", [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("parameters.flag = 1", []),
        ("last > 0.2", [1, 5]),
        ("last = null", [0, 3, 4, 6, 7, 8]),
    ],
)
def test_conditions_compare_values_of_one_kind(
    view_of: Callable[..., ExperimentView], condition: str, expected: list[int]
) -> None:
    odd = [math.nan, 0.25, 2**70, "high", math.inf, True, [1, 2], {"deep": 3}, None]
    at = {"lr": 0.1, "flag": True}
    finals = [dumps({"default": 0.7, "loss": loss, "a.b": 2}) for loss in odd]
    trials = [a_trial(number, parameters=at, final=final) for number, final in enumerate(finals)]
    last = [*odd[:2], -1.0, *odd[3:]]
    reports = [[{"default": value, "more": math.nan}] for value in last]
    metrics = [row for pair in zip(trials, reports, strict=True) for row in results(*pair)]
    assert numbers(view_of(*trials, metrics=metrics), conditions=[Condition.parse(condition)]) == expected


@pytest.mark.parametrize("condition", ["value.eval.loss < 1", "parameters.a.b < 1"])
def test_condition_takes_a_name_with_a_dot(view_of: Callable[..., ExperimentView], condition: str) -> None:
    space = {"a.b": {"_type": "uniform", "_value": [0, 1]}}
    fields = {"search_space": space, "objectives": [{"name": "eval.loss", "direction": "minimize"}]}
    assert numbers(view_of(**fields), conditions=[Condition.parse(condition)]) == []


def test_each_of_two_parameters_with_one_dotted_name_is_found_by_its_own(
    view_of: Callable[..., ExperimentView],
) -> None:
    points = [{"m.lr": 1, "m": {"_name": "a", "lr": 2}}, {"m.lr": 2, "m": {"_name": "a", "lr": 1}}]
    view = view_of(*(a_trial(number, parameters=point) for number, point in enumerate(points)))
    assert numbers(view, conditions=[Condition.parse("parameters.m.lr = 1")]) == [0]
    assert numbers(view, conditions=[Condition.parse("parameters.m/lr = 1")]) == [1]


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_breaks_out_of_the_statement(name: str, text: str) -> None:
    db = sqlite3.connect(":memory:")
    db.create_function("sql_json", 1, sql_json)
    db.execute(
        "CREATE TABLE trials (sequence_id, trial_id, record, reason, error, final, status, kind, next_sequence)"
    )
    query = TrialQuery(
        conditions=[Condition(f"parameters.{name}", "=", text)], search=text, sort=f"final.{name}"
    )
    try:
        where, values = query.where()
        order, more = query.order()
    except QueryError:
        return
    assert (
        db.execute(f"SELECT 1 FROM trials t WHERE {where} ORDER BY {order}", [*values, *more]).fetchall()
        == []
    )
