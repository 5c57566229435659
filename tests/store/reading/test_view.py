"""`ExperimentView` tells what the store holds: filtered, sorted, in pages, thinned out, since a cursor."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import Condition, ExperimentView, QueryError, TrialQuery
from pitchpipe.store.reading.log_files import NoSuchFile, read_piece
from pitchpipe.store.reading.view import Follow
from pitchpipe.store.schema import MIGRATIONS, SCHEMA_VERSION
from pitchpipe.store.store import StoreError

from ...server.made_stores import MadeExperiment, a_config, a_trial, results


@pytest.fixture
def view(made: MadeExperiment) -> Iterator[ExperimentView]:
    with ExperimentView(made.folder) as opened:
        yield opened


def numbers(view: ExperimentView, **asked: object) -> list[int]:
    return [trial["sequence_id"] for trial in view.trials(TrialQuery(**asked)).trials]  # type: ignore[arg-type]


def fill(made: MadeExperiment) -> None:
    """Five trials: three succeeded, one failed, one runs."""
    fourth = a_trial(3, value=0.3, parameters={"lr": 0.05, "units": 32, "model": {"depth": 4, "a.b": 1}})
    fifth = a_trial(4, "RUNNING", parameters={"lr": 0.4, "units": 16})
    made.commit(
        a_trial(0, value=0.5),
        a_trial(1, value=0.1),
        a_trial(2, "FAILED", reason="KeyError: 'lr'", error="Traceback\nKeyError: 'lr'", exit_code=1),
        fourth,
        fifth,
        metrics=[
            *results(fourth, [0.7]),
            *results(fifth, [0.9, {"default": 0.8, "accuracy": 0.2}, float("nan")]),
        ],
    )


def test_summary_counts_and_names_the_best(made: MadeExperiment, view: ExperimentView) -> None:
    fill(made)
    found = view.summary()
    assert found["counts"] == {"SUCCEEDED": 3, "FAILED": 1, "RUNNING": 1}
    assert (found["trials"], found["intermediate_results"], found["is_running"]) == (5, 4, False)
    assert found["best"][0]["sequence_id"] == 1
    assert found["limits"]["trial_concurrency"] == 1
    json.dumps(found, allow_nan=False)


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
    made: MadeExperiment, view: ExperimentView, asked: dict[str, object], expected: list[int]
) -> None:
    fill(made)
    assert numbers(view, **asked) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("parameters.lr<0.1", [0, 3]),
        ("parameters.units = 32", [3]),
        ("parameters.model.depth >= 4", [3]),
        ("parameters.model.a.b = 1", []),
        ("value <= 0.3", [1, 3]),
        ("value = null", [2, 4]),
        ("reason ~ KEY", [2]),
        ("status != SUCCEEDED", [2, 4]),
        ("duration > 9", [0, 1, 2, 3, 4]),
    ],
)
def test_conditions_compare_fields(
    made: MadeExperiment, view: ExperimentView, condition: str, expected: list[int]
) -> None:
    fill(made)
    assert numbers(view, conditions=[Condition.parse(condition)]) == expected


@pytest.mark.parametrize(
    "text", ["lr", "", "lr <> 3", "parameters. < 1", "nothing < 1", 'parameters.a"b < 1', "value < null"]
)
def test_conditions_that_make_no_sense_are_refused(
    made: MadeExperiment, view: ExperimentView, text: str
) -> None:
    with pytest.raises(QueryError):
        view.trials(TrialQuery(conditions=[Condition.parse(text)]))


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_breaks_out_of_the_statement(name: str, text: str) -> None:
    db = sqlite3.connect(":memory:")
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


def test_trial_is_returned_completely(made: MadeExperiment, view: ExperimentView) -> None:
    fill(made)
    found = view.trial("T0002")
    assert found == view.trial(2)
    assert (found["error"], found["exit_code"], found["kind"]) == (
        "Traceback\nKeyError: 'lr'",
        1,
        "USER_ERROR",
    )
    assert view.trial(4)["last"] is None  # its last result is no number
    with pytest.raises(LookupError, match="no trial 'T9'"):
        view.trial("T9")


def test_failures_that_differ_in_numbers_are_one_group(made: MadeExperiment, view: ExperimentView) -> None:
    made.commit(
        *(a_trial(n, "FAILED", reason=f"ValueError: bad value 0.{n}") for n in range(3)),
        a_trial(3, "FAILED", reason="exit code 3"),
    )
    groups = view.failures()
    assert [(group.count, group.sequence_ids) for group in groups] == [(3, [0, 1, 2]), (1, [3])]


def test_best_of_several_objectives_is_the_front(tmp_path: Path) -> None:
    objectives = [{"name": "default", "direction": "minimize"}, {"name": "speed", "direction": "maximize"}]
    made = MadeExperiment(tmp_path / "exps" / "front", a_config(objectives=objectives))
    values = [(1.0, 1.0), (2.0, 2.0), (2.0, 1.0), (1.0, 1.0), (3.0, 2.0)]
    made.commit(*(a_trial(n, final='{"default": 1}', values=pair) for n, pair in enumerate(values)))
    with ExperimentView(made.folder) as view:
        assert [trial["sequence_id"] for trial in view.best()] == [0, 1, 3]
        assert view.best()[1]["values"] == {"default": 2.0, "speed": 2.0}
    made.store.close()


def test_history_has_the_best_so_far(made: MadeExperiment, view: ExperimentView) -> None:
    fill(made)
    assert [(row["sequence_id"], row["best"]) for row in view.history()] == [(0, 0.5), (1, 0.1), (3, 0.1)]


# ---------------------------------------------------------------------- intermediate results


def test_results_come_once_with_a_cursor(made: MadeExperiment, view: ExperimentView) -> None:
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [1.0, 2.0, 3.0]))
    first = view.metrics(0, limit=2)
    second = view.metrics(0, first.cursor)
    assert [row["value"] for row in first.results + second.results] == [1.0, 2.0, 3.0]
    assert (first.has_more, second.has_more) == (True, False)
    made.commit(trial, metrics=results(trial, [4.0], first=3))
    assert [row["sequence"] for row in view.metrics(0, second.cursor).results] == [3]
    with pytest.raises(QueryError):
        view.metrics(0, "nonsense")


def test_results_that_a_later_attempt_reports_again_replace_the_earlier(
    made: MadeExperiment, view: ExperimentView
) -> None:
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [1.0, 2.0, 3.0]))
    seen = view.metrics(0)
    trial.attempt, trial.next_sequence = 2, 1
    made.commit(trial, superseded=[(0, 1, 1)])
    rewound = view.metrics(0, seen.cursor)
    assert (rewound.keep_below, rewound.results) == (1, [])
    made.commit(trial, metrics=results(trial, [20.0, 30.0, 40.0], first=1, attempt=2))
    again = view.metrics(0, seen.cursor)
    assert (again.keep_below, [row["value"] for row in again.results]) == (1, [20.0, 30.0, 40.0])
    assert view.metrics(0, again.cursor).results == []


def test_thinning_keeps_the_spikes_and_the_ends(made: MadeExperiment, view: ExperimentView) -> None:
    trial = a_trial(0, "RUNNING")
    values = [1.0] * 1000
    values[0], values[500], values[501], values[999] = 0.5, 99.0, -99.0, 0.7
    made.commit(trial, metrics=results(trial, values))
    curve = view.curve(0, points=20)
    assert len(curve.sequences) <= 24
    assert {0, 500, 501, 999} <= set(curve.sequences)
    assert curve.total == 1000
    assert view.curve(0).values == values


def test_metric_of_reported_dicts_and_what_is_not_a_number(
    made: MadeExperiment, view: ExperimentView
) -> None:
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [{"default": 1, "loss": 3}, 2.5, float("nan"), {"default": 4}]))
    assert view.curve(0).values == [1.0, 2.5, None, 4.0]
    assert view.curve(0, "loss").values == [3.0, None, None, None]
    assert [curve.total for curve in view.curves([0, 7])] == [4, 0]


# ---------------------------------------------------------------------- events


def test_events_are_what_has_changed(made: MadeExperiment) -> None:
    view, now = ExperimentView(made.folder), [0.0]
    view._feed._clock = lambda: now[0]

    def events(cursor: str | None = None) -> tuple[str, list[tuple[object, ...]]]:
        now[0] += 1.0
        page = view.events(cursor)
        return page.cursor, [
            tuple(e[k] for k in e if k not in ("n", "time", "trial_id", "attempt")) for e in page.events
        ]

    cursor, found = events()
    assert found == []
    trial = a_trial(0, "RUNNING")
    made.commit(trial, metrics=results(trial, [1.0, 2.0]))
    cursor, found = events(cursor)
    assert found == [("results", 0, 0, 2), ("trial", 0, "RUNNING")]
    made.commit(trial, metrics=results(trial, [3.0], first=2), status="STOPPING", reason="enough")
    _, found = events(cursor)
    assert found == [("experiment", "STOPPING", "enough"), ("results", 0, 2, 3)]
    assert view.events("00000000.5").reset
    assert not view.events(cursor).reset
    view.close()


# ---------------------------------------------------------------------- files


def test_logs_are_read_in_pieces_and_from_their_end(made: MadeExperiment, view: ExperimentView) -> None:
    (made.folder.logs / "manager.log").write_text("one\ntwö\nthree\n")
    assert [file.name for file in view.logs()] == ["manager.log"]
    assert view.log("manager.log", Follow(lines=2)).text == "twö\nthree\n"
    piece = view.log("manager.log", Follow(offset=4, limit=3))  # the ö has two bytes, of which one is there
    assert (piece.text, piece.next_offset) == ("tw", 6)
    assert view.log("manager.log", Follow(offset=piece.next_offset)).text == "ö\nthree\n"
    assert view.log("manager.log", Follow(offset=10**9)).text == ""


@pytest.mark.parametrize(
    "name", ["../experiment.db", "..", ".", "", "/etc/passwd", "a\0b", "link", "folder", "pipe"]
)
def test_nothing_but_the_files_of_the_folder_is_read(
    made: MadeExperiment, view: ExperimentView, name: str
) -> None:
    (made.folder.logs / "link").symlink_to("/etc/passwd")
    (made.folder.logs / "folder").mkdir()
    os.mkfifo(made.folder.logs / "pipe")
    with pytest.raises(NoSuchFile):
        view.log(name)
    with pytest.raises(LookupError):
        view.trial_log(0, name)


@given(st.text(max_size=20), st.integers(1, 7))
def test_pieces_make_the_whole(tmp_path_factory: pytest.TempPathFactory, text: str, limit: int) -> None:
    path = tmp_path_factory.getbasetemp() / "pieces"
    path.write_bytes(text.encode())
    found, offset = "", 0
    while (piece := read_piece(path, offset, max(4, limit))).next_offset > offset:
        found, offset = found + piece.text, piece.next_offset
    assert found == text


def test_trial_files_are_those_that_the_trial_printed(made: MadeExperiment, view: ExperimentView) -> None:
    fill(made)
    folder = made.folder.trial(1)
    folder.mkdir(parents=True)
    for name in ("stdout", "secret", "parameters.json"):
        (folder / name).write_text(name)
    assert [file.name for file in view.trial_logs(1)] == ["parameters.json", "stdout"]
    assert view.trial_log("T0001").text == "stdout"
    with pytest.raises(NoSuchFile):
        view.trial_log(1, "secret")


# ---------------------------------------------------------------------- where it cannot be read


def test_folder_without_experiment_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not the folder of an experiment"):
        ExperimentView(tmp_path).summary()


def test_database_of_a_newer_pitchpipe_is_refused(tmp_path: Path) -> None:
    database(tmp_path, "", 99)
    with (
        ExperimentView(ExperimentFolder(tmp_path)) as view,
        pytest.raises(StoreError, match="pip install -U"),
    ):
        view.summary()


def database(folder: Path, script: str, version: int) -> None:
    with closing(sqlite3.connect(folder / "experiment.db")) as db:
        db.executescript(f"{script} PRAGMA user_version = {version};")


OLD = (
    f"{MIGRATIONS[0]} INSERT INTO experiment (id, status, config, token, created, end_time)"
    """ VALUES ('old', 'DONE', '{"maxTrialNumber": 1}', 'secret', 1.0, 2.0);"""
)


def test_database_of_an_older_pitchpipe_is_upgraded_when_it_is_read(tmp_path: Path) -> None:
    database(tmp_path, OLD, 1)
    with ExperimentView(ExperimentFolder(tmp_path)) as view:
        assert view.summary()["status"] == "DONE"
        assert view.database.schema_version() == SCHEMA_VERSION
    assert ExperimentFolder(tmp_path).manager() is None


def test_database_that_an_older_pitchpipe_still_writes_is_left_alone(tmp_path: Path) -> None:
    database(tmp_path, OLD, 1)
    owner = ExperimentFolder(tmp_path)
    owner.own()
    with ExperimentView(ExperimentFolder(tmp_path)) as view, pytest.raises(StoreError, match="stop it first"):
        view.summary()
    owner.disown()


def test_reader_does_not_keep_the_manager_from_writing(made: MadeExperiment, view: ExperimentView) -> None:
    fill(made)
    view.summary()
    made.commit(a_trial(5, value=0.01))
    assert view.best()[0]["sequence_id"] == 5
    with pytest.raises(StoreError, match="readonly"):
        view.database.rows("DELETE FROM trials")
