"""What trials report under names: the last value of each, the same in SQL, in tables, in exports and in Python."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.protocol import dumps
from pitchpipe.results import result_of
from pitchpipe.store.reading import TrialQuery
from pitchpipe.store.reading.csv_cells import cell_value
from pitchpipe.store.reading.exporting import csv_lines, json_lines
from pitchpipe.store.reading.metrics import Metric, last_values
from pitchpipe.store.reading.trial_query import Condition
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_config, a_trial, counted_steps, results
from .test_families import a_repeat

Viewing = Callable[..., ExperimentView]


def a_stopped(number: int, reports: list[Any], status: str = "EARLY_STOPPED") -> tuple[Any, list[Any]]:
    """Return a trial without a final result, and its intermediate results."""
    trial = a_trial(number, status)
    return trial, results(trial, reports)


def a_final(number: int, final: Any, reports: list[Any] | None = None) -> tuple[Any, list[Any]]:
    """Return a trial that succeeded with this final result."""
    trial = a_trial(number, final=dumps(final), values=(0.5,), finals=1)
    return trial, results(trial, reports or [])


def viewed(view_of: Viewing, *pairs: tuple[Any, list[Any]], **fields: Any) -> ExperimentView:
    return view_of(
        *(trial for trial, _ in pairs), metrics=[row for _, rows in pairs for row in rows], **fields
    )


def values_of(view: ExperimentView, *names: str) -> list[list[Any]]:
    rows = view.trials(TrialQuery(limit=None)).trials
    found = view.metric_values(rows, names)
    return [[found[row.sequence_id].get(name) for name in names] for row in rows]


def order_of(view: ExperimentView, sort: str, **asked: Any) -> list[int]:
    return [row.sequence_id for row in view.trials(TrialQuery(sort=sort, **asked)).trials]


def found_by(view: ExperimentView, condition: str) -> list[int]:
    conditions = Condition.parse_all(condition)
    return [row.sequence_id for row in view.trials(TrialQuery(conditions=conditions)).trials]


def test_trial_has_what_it_reported_last(view_of: Viewing) -> None:
    view = viewed(
        view_of,
        a_final(0, {"default": 0.9, "loss": 0.3}, [{"default": 0.5, "loss": 0.7, "epoch": 1}]),
        a_final(1, 0.8, [{"default": 0.5, "loss": 0.6}, {"default": 0.6, "loss": 0.5}]),
        a_stopped(2, [{"default": 0.1, "loss": 0.9, "val": 4}, {"default": 0.2, "loss": 0.8}, 0.3]),
        a_stopped(3, [{"default": 0.1, "loss": 0.2}], "RUNNING"),
        a_stopped(4, [0.1, 0.2], "FAILED"),
    )
    assert values_of(view, "loss", "val", "epoch") == [
        [0.3, None, 1],
        [0.5, None, None],
        [0.8, 4, None],
        [0.2, None, None],
        [None, None, None],
    ]
    assert view.names().metrics == (
        Metric("default", True, is_final=True),
        Metric("loss", True, is_final=True),
        Metric("epoch", True),
        Metric("val", True),
    )
    assert order_of(view, "loss") == [3, 0, 1, 2, 4]
    assert order_of(view, "metrics.loss", descending=True) == [2, 1, 0, 3, 4]
    assert found_by(view, "loss < 0.6 and status != RUNNING") == [0, 1]
    assert found_by(view, "val = 4") == [2]
    assert found_by(view, "loss = null") == [4]


def test_results_that_a_later_attempt_replaced_do_not_count(
    made: MadeExperiment, view: ExperimentView
) -> None:
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [{"loss": 0.1}, {"loss": 0.2}]))
    assert (values_of(view, "loss"), found_by(view, "loss = 0.2")) == ([[0.2]], [0])
    trial.attempt, trial.next_sequence = 2, 1
    made.commit(trial, superseded=[(0, 1, 1)])
    assert (values_of(view, "loss"), found_by(view, "loss = 0.1")) == ([[0.1]], [0])


@pytest.mark.parametrize(
    ("value", "condition", "text"),
    [
        (None, "x = null", ""),
        (math.nan, "x = null", ""),
        (math.inf, "x = 9e999", "inf"),
        ("high", "x = high", "high"),
        ("0.5", "x ~ 0.5", "'0.5"),
        ([1, 2], "x = [1, 2]", "[1, 2]"),
        (True, "x = true", "True"),
        (2**70, "x > 1e20", str(2**70)),
    ],
)
def test_value_of_any_kind_is_kept_and_found(view_of: Viewing, value: Any, condition: str, text: str) -> None:
    view = viewed(view_of, a_stopped(0, [{"x": 0.25}, {"x": value}]), a_stopped(1, [{"x": 0.25}]))
    (row,), _ = values_of(view, "x")
    assert repr(row) == repr(value)
    assert found_by(view, condition) == [0]
    assert found_by(view, "x <= 0.25") == [1]
    assert order_of(view, "x") == [1, 0]  # the lowest number, then texts, then what has no order
    first, _ = csv.DictReader(io.StringIO(b"".join(csv_lines(view)).decode()))
    assert first["metrics.x"] == text
    assert repr(result_of(view.folder.path).trials[0]["metrics"]) == repr({"x": value})


NAMES = [
    "select", "order", "a b", "it's", 'say "x"', "a,b", "x[0]", "[x]", "a.b", "a/b", "日本 \U0001f600", "a=b", "é",
    "-loss", "not x", "a and b", "status", "Trial", "took", "lr", "units.x", "best", "value", "final.x", "metrics",
    "5", "null", " a ", "a\nb", "parameters[lr]", "NaN", "acc@5", "%", "\\", "😀"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_metric_of_any_name_is_a_column_an_order_and_a_condition_by_its_heading(
    view_of: Viewing, name: str
) -> None:
    view = viewed(
        view_of,
        a_final(0, {"default": 1.0, name: 0.5}),
        a_stopped(1, [{"default": 1.0, name: 0.25}, {"default": 2.0}]),
        a_stopped(2, [{"default": 1.0, "other": 7}]),
    )
    assert name in [one.name for one in view.names().beside]
    assert values_of(view, name) == [[0.5], [0.25], [None]]
    heading = view.names().heading(name)
    field = view.field(heading)
    assert field == f"metrics.{name}"
    assert order_of(view, field) == [1, 0, 2]
    assert found_by(view, f"{heading} < 0.3") == [1]
    assert found_by(view, f"other = 7 and {heading} = null") == [2]
    exported = json.loads(b"".join(json_lines(view)))["trials"]
    assert [trial["metrics"].get(name) for trial in exported] == [0.5, 0.25, None]
    table = csv.DictReader(io.StringIO(b"".join(csv_lines(view)).decode()))
    assert [cell_value(row[f"metrics.{name}"]) for row in table] == [0.5, 0.25, None]


def test_nested_names_are_joined_by_dots(view_of: Viewing) -> None:
    nested = {"eval": {"acc": 0.5, "by class": {"a": 1}}, "eval.loss": 3, "m": {"x": 1}, "m.x": 2}
    view = viewed(view_of, a_stopped(0, [nested]), a_final(1, {"default": 1.0, "eval": {"acc": 0.25}}))
    names = ("eval.acc", "eval.by class.a", "eval.loss", "m.x", "m/x", "eval")
    assert values_of(view, *names)[0] == [0.5, 1, 3, 2, 1, None]
    assert order_of(view, "eval.acc") == [1, 0]
    for name, value in zip(names[:-1], (0.5, 1, 3, 2, 1), strict=True):
        assert found_by(view, f"{view.names().heading(name)} = {value}") == [0]
    assert found_by(view, "metrics.eval.acc = null") == []


reported = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0.5, -2.25, 1e300, 7, math.nan, math.inf, -math.inf]),
    st.text("ab./", max_size=3),
    st.lists(st.none()),
)
objects = st.recursive(
    st.dictionaries(st.text("ab./", min_size=1, max_size=3), reported, max_size=3),
    lambda inner: st.dictionaries(st.text("ab./", min_size=1, max_size=3), inner | reported, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.lists(objects | reported, max_size=3), min_size=1, max_size=3), st.data())
def test_sql_reads_the_same_values_as_python(
    view_of_any: Viewing, trials: list[list[Any]], data: st.DataObject
) -> None:
    pairs = [a_stopped(number, reports) for number, reports in enumerate(trials)]
    view = viewed(view_of_any, *pairs)
    expected = [last_values(reports, None) for reports in trials]
    names = sorted({name for values in expected for name in values})
    if not names:
        assert view.names().metrics == ()
        return
    name = data.draw(st.sampled_from(names))
    assert repr(values_of(view, name)) == repr([[values.get(name)] for values in expected])
    numbers = {
        number: values[name]
        for number, values in enumerate(expected)
        if isinstance(values.get(name), int | float) and not isinstance(values[name], bool)
        if not math.isnan(values[name])
    }
    assert found_by(view, f"metrics[{json.dumps(name)}] <= 9e999") == sorted(numbers)
    ordered = [n for n in order_of(view, f"metrics.{name}") if n in numbers]
    assert ordered == sorted(numbers, key=lambda number: (numbers[number], number))


@pytest.fixture(scope="module")
def view_of_any(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Yield a function as `view_of`, for more experiments than one test makes."""
    with ExitStack() as views:

        def made(*trials: Any, metrics: Any = (), **fields: Any) -> ExperimentView:
            experiment = MadeExperiment(tmp_path_factory.mktemp("made") / "made1234", a_config(**fields))
            experiment.commit(*trials, metrics=metrics)
            experiment.store.close()
            return views.enter_context(ExperimentView(experiment.folder))

        yield made


def test_names_of_very_many_metrics_and_trials_are_read_in_part(view_of: Viewing) -> None:
    wide = {f"metric {number:04}": number / 7 for number in range(2000)}
    pairs = [a_final(number, {"default": 1.0, **wide}) for number in range(300)]
    costs = []
    for count in (150, 300):
        view = viewed(view_of, *pairs[:count])
        with counted_steps() as steps, ExperimentView(view.folder) as fresh:
            assert len(fresh.names().beside) == 2000
        costs.append(len(steps))
    assert costs[1] < 1.5 * costs[0]


def test_metric_that_one_of_many_trials_has_is_known_by_its_name(view_of: Viewing) -> None:
    pairs = [
        a_final(number, {"default": 1.0, **({"rare": 3} if number == 777 else {})}) for number in range(1500)
    ]
    view = viewed(view_of, *pairs)
    assert view.field("rare") == "metrics.rare"
    assert found_by(view, "rare > 2") == [777]
    assert view.all_metric_names() == ["default", "rare"]


def test_metrics_of_a_family_are_the_means_of_its_repeats(view_of: Viewing) -> None:
    losses = [0.25, 0.75, None, "high", 4.0]
    trials = [a_repeat(number, number - number % 3, number % 3, 0.5) for number in range(5)]
    for trial, loss in zip(trials, losses, strict=True):
        trial.final = dumps({"default": 0.5, "loss": loss})
    view = view_of(*trials, repeats={"count": 3})
    families = view.families()
    assert view.metric_values(families, ["loss"]) == {0: {"loss": 0.5}, 3: {"loss": 4.0}}
    assert [row["metrics"]["loss"] for row in result_of(view.folder.path).families] == [0.5, 4.0]


def test_frame_has_a_column_for_each_metric(view_of: Viewing) -> None:
    pandas = pytest.importorskip("pandas")
    view = viewed(view_of, a_stopped(0, [{"loss": 0.5, "eval": {"acc": 1}}]), a_final(1, 0.5))
    table = result_of(view.folder.path).dataframe()
    assert isinstance(table, pandas.DataFrame)
    assert [name for name in table if name.startswith("metrics")] == ["metrics.loss", "metrics.eval.acc"]
    assert table["metrics.loss"][0] == 0.5
    assert math.isnan(table["metrics.loss"][1])
