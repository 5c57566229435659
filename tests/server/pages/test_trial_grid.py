"""The rows of the table of trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from pitchpipe.protocol import dumps, repeated, with_family_end
from pitchpipe.server.pages.grid_columns import columns_of, metric_column, of_families, reported_columns
from pitchpipe.server.pages.trial_grid import GridRequest, metrics_of, read_rows
from pitchpipe.store import Annotation, Annotations
from pitchpipe.store.reading import ExperimentView, QueryError

from ...stored import MadeExperiment, a_config, a_trial, results


def test_repeats_have_columns_that_can_be_sorted_and_filtered(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "k3x9a2bq", a_config(repeats=2))
    trials = [a_trial(number, value=number / 10) for number in range(4)]
    for number, trial in enumerate(trials):
        trial.record = repeated(trial.record, number // 2 * 2, number % 2)
    made.commit(*trials)
    chosen = '{"family": {"filterType": "number", "type": "equals", "filter": 2}}'
    order = '[{"colId": "repeat", "sort": "desc"}]'
    with ExperimentView(made.folder) as view:
        columns = columns_of(view.config(), view.metric_names())
        found = read_rows(view, columns, GridRequest.parse(0, 10, "", "", order, chosen), "/trials")
    assert [column.head for column in columns[:3]] == ["Trial", "Family", "Repeat"]
    assert [(row["number"], row["family"], row["repeat"]) for row in found["rows"]] == [
        (3, "2", "1"),
        (2, "2", "0"),
    ]


def test_each_of_two_parameters_with_one_dotted_name_has_a_column(tmp_path: Path) -> None:
    unit = {"_type": "uniform", "_value": [0, 1]}
    nested = {"_type": "choice", "_value": [{"_name": "a", "lr": unit}, {"_name": "b", "lr": unit}]}
    made = MadeExperiment(tmp_path / "k3x9a2bq", a_config(search_space={"m": nested, "m.lr": unit}))
    points = [{"m": {"_name": "ab"[number % 2], "lr": number / 8}, "m.lr": 0.5} for number in range(4)]
    made.commit(*(a_trial(number, parameters=point) for number, point in enumerate(points)))
    chosen = '{"parameters.m/lr": {"filterType": "number", "type": "lessThan", "filter": 0.2}}'
    with ExperimentView(made.folder) as view:
        columns = columns_of(view.config(), view.metric_names())
        rows = read_rows(view, columns, GridRequest.parse(0, 10, "", "", "", chosen), "/trials")["rows"]
    heads = [column.head for column in columns if column.field.startswith("parameters.")]
    assert heads == ["m", "m/lr (a)", "m/lr (b)", "m.lr"]
    assert [(row["parameters.m/lr"], row["parameters.m.lr"]) for row in rows] == [
        ("0", "0.5"),
        ("0.125", "0.5"),
    ]


def test_null_is_shown_where_a_trial_has_it(tmp_path: Path) -> None:
    options = {"_type": "choice", "_value": [None, "null", [None, True]]}
    nested = {"_type": "choice", "_value": [{"_name": "a", "of": options}, {"_name": None}]}
    made = MadeExperiment(tmp_path / "k3x9a2bq", a_config(search_space={"m": nested, "of": options}))
    points = [
        {"m": {"_name": "a", "of": None}, "of": None},
        {"m": {"_name": None}, "of": [None, True]},
    ]
    made.commit(*(a_trial(number, parameters=point) for number, point in enumerate(points)))
    with ExperimentView(made.folder) as view:
        columns = columns_of(view.config(), view.metric_names())
        rows = read_rows(view, columns, GridRequest.parse(0, 10, "", "", "", "{}"), "/trials")["rows"]
    names = [column.field for column in columns if column.field.startswith("parameters.")]
    assert sorted([row.get(name) for name in names] for row in rows) == [
        ["a", "null", "null"],
        ["null", None, "[null, true]"],
    ]


def test_tags_and_notes_have_columns_that_can_be_filtered(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "k3x9a2bq")
    made.commit(*(a_trial(number, value=number / 10) for number in range(3)))
    Annotations(made.folder).write(1, Annotation("look at this again", ("odd", "baseline")))
    chosen = '{"tags": {"filterType": "text", "type": "notBlank"}}'
    with ExperimentView(made.folder) as view:
        columns = columns_of(view.config(), view.metric_names())
        found = read_rows(view, columns, GridRequest.parse(0, 10, "", "", "", chosen), "/trials")["rows"]
    assert [(row["number"], row["tags"], row["note"]) for row in found] == [
        (1, "odd, baseline", "look at this again")
    ]


def test_columns_are_as_wide_as_their_heads_and_numbers() -> None:
    widths = {column.head: column.width for column in columns_of(a_config().canonical(), ["default"])}
    assert widths["Results"] > 9 * len("Results") + 50  # the head, an arrow and a filter
    assert widths["lr"] >= 120  # 0.000220123


def test_table_without_repeats_has_no_column_of_families() -> None:
    heads = [column.head for column in columns_of(a_config().canonical(), ["default"])]
    assert "Family" not in heads


def test_metrics_have_columns_that_can_be_sorted_and_filtered(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "k3x9a2bq")
    stopped = a_trial(1, "EARLY_STOPPED")
    final = dumps({"default": 0.5, "train_loss": 0.25, "note": "ok", "lr": 9})
    reports = results(stopped, [{"default": 0.5, "train_loss": 0.125, "note": "x" * 1000}])
    made.commit(a_trial(0, final=final, values=(0.5,)), stopped, a_trial(2, value=0.5), metrics=reports)
    chosen = '{"metrics.train_loss": {"filterType": "number", "type": "lessThan", "filter": 1}}'
    order = '[{"colId": "metrics.train_loss", "sort": "asc"}]'
    with ExperimentView(made.folder) as view:
        reported = reported_columns(view.names())
        columns = columns_of(view.config(), view.metric_names(), reported=reported)
        request = GridRequest.parse(0, 10, "", "", order, chosen, "train_loss < 0.2 and lr = 0.1")
        (row,) = read_rows(view, columns, request, "/trials")["rows"]
        request = GridRequest.parse(0, 10, "", "", order, "{}")
        numbers = [one["number"] for one in read_rows(view, columns, request, "/trials")["rows"]]
    assert [(one.head, one.kind, one.hidden) for one in reported] == [
        ("train_loss", "number", False),
        ("metrics.note", "text", False),
        ("metrics.lr", "number", True),
    ]
    heads = [column.head for column in columns]
    assert heads.index("Result") < heads.index("lr") < heads.index("train_loss")
    assert (row["number"], row["metrics.train_loss"]) == (1, "0.125")
    assert len(row["metrics.note"]) < 400
    assert numbers == [1, 0, 2]


def test_of_very_many_metrics_some_are_columns_and_any_by_its_name(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "k3x9a2bq")
    wide = {f"m{number}": number for number in range(2000)}
    made.commit(a_trial(0, final=dumps({"default": 0.5, **wide}), values=(0.5,)))
    with ExperimentView(made.folder) as view:
        names = view.names()
        usual, chosen = reported_columns(names), reported_columns(names, ["status", "metrics.m1999"])
        columns = columns_of({}, [], reported=[metric_column("m1234")])
        (row,) = read_rows(view, columns, GridRequest(), "/trials")["rows"]
    assert [len(usual), sum(not column.hidden for column in usual), len(chosen)] == [50, 2, 51]
    assert chosen[-1].field == "metrics.m1999"
    assert row["metrics.m1234"] == "1234"


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '"a"'])
def test_metrics_that_are_no_list_of_names_are_refused(text: str) -> None:
    with pytest.raises(QueryError):
        metrics_of(text)


def test_trial_that_violates_a_limit_is_marked(tmp_path: Path) -> None:
    objectives = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "constraint": "<= 20"}]
    made = MadeExperiment(tmp_path / "k3x9a2bq", a_config(objectives=objectives))
    made.commit(*(a_trial(n, final="{}", values=(0.5 - n / 10, ms)) for n, ms in enumerate((20.0, 21.0))))
    with ExperimentView(made.folder) as view:
        columns = columns_of(view.config(), view.metric_names())
        best, beyond = read_rows(view, columns, GridRequest(), "/trials")["rows"]
    assert (best["number"], best["broken"], best["tone"]) == (0, [], "good")
    assert (beyond["number"], beyond["broken"], beyond["tone"]) == (1, ["value.ms"], "warn")
    assert "pp-star" in best["sequence_id"]
    assert "pp-limit" in beyond["sequence_id"]
    assert beyond["reason"] == "violates ms <= 20"


def test_families_have_rows_with_means(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "k3x9a2bq", a_config(repeats=2))
    trials = [
        a_trial(n, final=dumps({"default": n / 4, "loss": n}), values=(n / 4,), finals=1) for n in range(4)
    ]
    for number, trial in enumerate(trials):
        trial.record = repeated(trial.record, number // 2 * 2, number % 2)
    for trial in trials[::2]:
        trial.record = with_family_end(trial.record, "complete")
    made.commit(*trials)
    with ExperimentView(made.folder) as view:
        reported = reported_columns(view.names())
        columns = of_families(columns_of(view.config(), view.metric_names(), reported=reported))
        request = GridRequest.parse(
            0, 10, "", "", '[{"colId": "metrics.loss", "sort": "desc"}]', "", families=True
        )
        found = read_rows(view, columns, request, "/trials")
    assert [(row["number"], row["metrics.loss"], row["family"]) for row in found["rows"]] == [
        (2, "2.5", "mean of 2 repeats"),
        (0, "0.5", "mean of 2 repeats"),
    ]
    assert found["rows"][1]["value.default"].startswith("0.125 ±")
    assert not any(column.definition["filter"] for column in columns)
    assert found["total"] == 2


def test_status_is_as_wide_as_its_words() -> None:
    (status,) = (column for column in columns_of({}, []) if column.field == "status")
    assert status.width >= 9 * len("stopped early")
