"""Trials are filtered, sorted and paged, and no text gets into the SQL; refused conditions: test_sentences.txt."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.protocol import dumps
from pitchpipe.store import Annotation, Annotations
from pitchpipe.store.reading.json_values import add_json_functions
from pitchpipe.store.reading.trial_query import Condition, QueryError, TrialQuery, plain_field, spelled_field
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial, results


def numbers(view: ExperimentView, **asked: object) -> list[int]:
    return [trial.sequence_id for trial in view.trials(TrialQuery(**asked)).trials]  # type: ignore[arg-type]


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
        ("final.loss > 'a'", [3, 7]),  # an object is its JSON text
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


ODD_NAMES = [
    "a=b",
    "c<d",
    "x > y",
    "p and q",
    "it's",
    'a"b',
    "é",
    "é=1",
    "a\\b",
    "a/b",
    "a.b",
    " a ",
    "x[0]",
    "\u65e5\u672c \U0001f600",
    "a\tb",
]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("head", ["parameters", "final", "value"])
@pytest.mark.parametrize("spaces", ["", " "])
def test_condition_takes_any_name_in_brackets(
    view_of: Callable[..., ExperimentView], name: str, head: str, spaces: str
) -> None:
    point, final = {name: 0.5, "m": {"_name": "sgd", name: 2}}, {name: 0.5, "m": {name: 2}}
    trials = [
        a_trial(0, parameters=point, final=json.dumps(final), values=(0.5,)),
        a_trial(
            1, parameters={"other": 1}, final=json.dumps({"other": 1}, ensure_ascii=False), values=(0.9,)
        ),
        a_trial(
            2,
            parameters={**point, name: 0.7},
            final=json.dumps({name: 0.7}, ensure_ascii=False),
            values=(0.7,),
        ),
    ]
    view = view_of(*trials, objectives=[{"name": name, "direction": "minimize"}])
    found = f"{head}{spaces}[{spaces}{json.dumps(name)}{spaces}]{spaces}"
    quoted = "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
    for spelled in (
        found,
        found.replace(json.dumps(name), json.dumps(name, ensure_ascii=False)),
        f"{head}[{quoted}]",
    ):
        assert numbers(view, conditions=Condition.parse_all(f"{spelled}< 0.6 and value != null")) == [0]
    sort = plain_field(found)
    assert numbers(view, sort=sort, descending=True)[0] == (1 if head == "value" else 2)
    if head != "value":
        condition = f'{head}["m"][{json.dumps(name)}] = 2'
        assert numbers(view, conditions=Condition.parse_all(condition)) == (
            [0, 2] if head == "parameters" else [0]
        )


@pytest.mark.parametrize(("name", "expected"), [("é", [0]), ("a=b", [0]), ("n", [0])])
def test_curve_of_a_metric_takes_any_name(
    view_of: Callable[..., ExperimentView], name: str, expected: list[int]
) -> None:
    trial = a_trial(0, "RUNNING")
    view = view_of(
        trial, metrics=results(trial, [{"default": 1.0, name: 0.25}, {"default": 1.0, name: True}])
    )
    assert list(view.curve(0, name).values) == [0.25, 1.0]


@pytest.mark.parametrize(
    ("name", "equal"),
    [
        ("parameters.n", "3"),
        ("final.loss", "0.5"),
        ("reason", "x"),
        ("value", "0.5"),
        ("kind", "USER_ERROR"),
        ("tags", "a"),
        ("note", "b"),
        ("parameters.flag", "true"),
    ],
)
def test_not_equal_is_the_complement_of_equal(
    view_of: Callable[..., ExperimentView], name: str, equal: str
) -> None:
    view = view_of(
        a_trial(0, parameters={"n": 3, "flag": True}, final='{"loss": 0.5}', values=(0.5,), reason="x"),
        a_trial(1, parameters={"n": None, "flag": 1}, final='{"loss": NaN}', values=(0.5,), reason="y"),
        a_trial(2, "FAILED", parameters={"flag": "true"}),
        a_trial(3, parameters={"n": "3"}, final='{"loss": "0.5"}', values=(0.7,)),
    )
    Annotations(view.folder).write(0, Annotation("b", tags=("a",)))
    at = set(numbers(view, conditions=[Condition.parse(f"{name} = {equal}")]))
    assert at
    assert set(numbers(view, conditions=[Condition.parse(f"{name} != {equal}")])) == {0, 1, 2, 3} - at
    assert set(numbers(view, conditions=[Condition.parse(f"{name} != null")])) == {0, 1, 2, 3} - set(
        numbers(view, conditions=[Condition.parse(f"{name} = null")])
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("= true", [0]), ('= "true"', [1]), ("!= true", [1, 2, 3]), ('!= "true"', [0, 2, 3]), ("~ tru", [0, 1])],
)
def test_true_is_not_the_text(
    view_of: Callable[..., ExperimentView], condition: str, expected: list[int]
) -> None:
    view = view_of(
        *(a_trial(n, parameters={"c": option}) for n, option in enumerate((True, "true", 1, False)))
    )
    assert sorted(numbers(view, conditions=[Condition.parse(f"parameters.c {condition}")])) == expected


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
    query = TrialQuery(
        conditions=[Condition(f"parameters.{name}", "=", text)], search=text, sort=f"final.{name}"
    )
    try:
        where, values = query.where()
        order, more = query.order()
    except QueryError:
        assert not name or len(name) > 400
        return
    with closing(sqlite3.connect(":memory:")) as db:
        add_json_functions(db)
        db.execute(
            "CREATE TABLE trials"
            " (sequence_id, trial_id, record, reason, error, final, status, kind, next_sequence)"
        )
        statement = f"SELECT 1 FROM trials t WHERE {where} ORDER BY {order}"
        assert db.execute(statement, [*values, *more]).fetchall() == []


@given(st.text(min_size=1, max_size=20) | st.sampled_from(ODD_NAMES))
def test_spelled_field_is_read_as_the_field(name: str) -> None:
    (read,) = Condition.parse_all(f"{spelled_field(f'parameters.{name}')} < 1 and value > 2")[:1]
    assert (read.field, read.symbol) == (f"parameters.{name}", "<")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("parameters.lr == 0.15", [0]),
        ("parameters.lr <= .15", [0, 1]),
        ("parameters.lr < 0.15", [1]),
        ("parameters.lr > 0.15", [2]),
        ("parameters.lr >= +.15", [0, 2]),
        ("parameters.lr != 0.15", [1, 2]),
        ("value > -.5", [0]),
        ("parameters.units = 9007199254740993", [0]),
    ],
)
def test_fractions_that_differ_by_rounding_are_equal(
    view_of: Callable[..., ExperimentView], condition: str, expected: list[int]
) -> None:
    units = 2**53 + 1
    made = [
        a_trial(number, value=value, parameters={"lr": lr, "units": units + number})
        for number, (lr, value) in enumerate([(0.1 + 0.05, 0.5), (0.1, -0.6), (0.2, -1.0)])
    ]
    assert numbers(view_of(*made), conditions=Condition.parse_all(condition)) == expected


@pytest.mark.parametrize(("word", "written"), [("None", "null"), ("True", "true"), ("False", "false")])
def test_words_of_python_are_named(word: str, written: str) -> None:
    with pytest.raises(QueryError, match=f"write {written} for {word}, or '{word}' in quotes"):
        Condition.parse(f"parameters.act == {word}")
    assert Condition.parse(f"parameters.act == '{word}'").value == word


@pytest.mark.parametrize("text", ["value < 0.2 && status = FAILED", "value < 0.2 || value > 1"])
def test_other_words_for_and_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="only and joins conditions"):
        Condition.parse_all(text)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("duration < 5s", 5.0),
        ("duration < '5s'", 5.0),
        ("duration >= 2 min 05 s", 125.0),
        ("duration != 1.5h", 5400.0),
        ("duration > 1h30m", 5400.0),
        ("duration > 5min", 300.0),
        ("duration < 2 d 7 h", 198000.0),
        ("start_time > 2026-01-01", datetime(2026, 1, 1).timestamp()),
        ('end_time <= "2026-01-01 14:30:00"', datetime(2026, 1, 1, 14, 30).timestamp()),
        ("created < 2026-01-01T00:00:00Z", 1767225600.0),
    ],
)
def test_durations_and_times_are_written_as_tables_show_them(condition: str, value: float) -> None:
    _, values = TrialQuery(conditions=[Condition.parse(condition)]).where()
    assert value in values


@pytest.mark.parametrize(
    "condition",
    [
        "duration < soon",
        "duration < '5 parsecs'",
        "start_time > yesterday",
        "start_time > '5s'",
        "value < '0.5'",
        "last < 'x'",
        "attempt < '2'",
        "parameters.lr < 5s",
    ],
)
def test_text_is_not_compared_with_numbers(condition: str) -> None:
    with pytest.raises(QueryError):
        TrialQuery(conditions=[Condition.parse(condition)]).where()


@pytest.mark.parametrize("text", ["(lr < 0.1)", "lr<0.99 & lr>0", "lr < 1 | lr > 2"])
def test_parentheses_and_signs_between_conditions_are_refused(text: str) -> None:
    with pytest.raises(QueryError):
        Condition.parse_all(text)


def test_text_may_have_the_signs_of_other_languages() -> None:
    assert Condition.parse("parameters.name = R&D").value == "R&D"
