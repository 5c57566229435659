"""The rows of the table of trials."""

from __future__ import annotations

from pathlib import Path

from pitchpipe.protocol import repeated
from pitchpipe.server.pages.trial_grid import GridRequest, columns_of, read_rows
from pitchpipe.store import Annotation, Annotations
from pitchpipe.store.reading import ExperimentView

from ...stored import MadeExperiment, a_config, a_trial


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
