"""The API: its replies, and its error messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from pitchpipe.cli.app import run
from pitchpipe.manager.control.connection import ControlError
from pitchpipe.server.api import models
from pitchpipe.server.experiments import Experiments, ResponseCache
from pitchpipe.store import Annotation, Annotations
from pitchpipe.store.reading import ExperimentView, curves, feed, read_model

from ..stored import MadeExperiment, a_config, a_trial, results
from .asking import Asking

WHERE = "/api/v1/experiments/made1234"


@pytest.fixture
def asking(made: MadeExperiment) -> Iterator[Asking]:
    running = a_trial(3, "RUNNING")
    made.commit(
        a_trial(0, value=0.5),
        a_trial(1, value=0.1, parameters={"lr": float("inf"), "layers": {"units": 2**70}}),
        a_trial(2, "FAILED", reason="KeyError: 'ä'", error="KeyError: 'ä'"),
        running,
        metrics=results(running, [3.0, {"default": 2.0, "note": "x"}, float("nan")]),
    )
    (made.folder.logs / "manager.log").write_text("one\ntwo\n")
    experiments = Experiments(made.folder.path.parent)
    yield Asking(experiments)
    experiments.close()


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (models.Trial, read_model.FamilyRow),
        (models.Repeats, read_model.Repeats),
        (models.ExperimentSummary, read_model.Summary),
        (models.Objective, read_model.Goal),
        (models.Front, read_model.ParetoFront),
        (models.FrontPoint, read_model.VolumeEntry),
        (models.HistoryPoint, read_model.HistoryEntry),
        (models.Closest, read_model.ClosestTrial),
        (models.ParameterChange, read_model.ChangedParameter),
        (models.Results, curves.NewResults),
        (models.Result, curves.ReportedResult),
        (models.Curve, curves.Curve),
        (models.EventPage, feed.EventPage),
    ],
)
def test_document_has_the_fields_of_what_is_written(model: type[BaseModel], kind: Any) -> None:
    assert set(model.model_fields) == {one.name for one in fields(kind)}


def test_document_has_the_fields_of_a_single_trial() -> None:
    written = {one.name for one in fields(read_model.TrialDetail)}
    assert set(models.TrialDetail.model_fields) - {"repeats"} == written


def test_experiment_and_what_belongs_to_it(asking: Asking) -> None:
    assert [each["id"] for each in asking.get("/api/v1/experiments").json] == ["made1234"]
    assert asking.get("/api/v1/experiments/made").json == asking.get(WHERE).json
    assert asking.get(f"{WHERE}/config").json["trialCommand"] == "true"
    assert [trial["sequence_id"] for trial in asking.get(f"{WHERE}/best", count=5).json["trials"]] == [1, 0]
    assert [point["best"] for point in asking.get(f"{WHERE}/history").json] == [0.5, 0.1]
    assert asking.get(f"{WHERE}/failures").json[0]["reason"] == "KeyError: 'ä'"
    assert asking.get(f"{WHERE}/importance").json["why_not"]


def test_front_has_its_volume_and_the_summary_the_limits(tmp_path: Path) -> None:
    goals = [{"name": "loss", "direction": "minimize"}, {"name": "mb", "direction": "minimize"}]
    config = a_config(objectives=[*goals, {"name": "ms", "constraint": "<= 20"}])
    made = MadeExperiment(tmp_path / "experiments" / "front", config)
    values = [(0.0, 2.0, 30.0), (1.0, 1.0, 5.0)]
    made.commit(*(a_trial(n, final="{}", values=each) for n, each in enumerate(values)))
    made.store.close()
    experiments = Experiments(made.folder.path.parent)
    asking = Asking(experiments)
    summary = asking.get("/api/v1/experiments/front").json
    assert (summary["objectives"], summary["outcome_limits"], summary["closest"]) == (
        goals,
        {"ms": "<= 20"},
        None,
    )
    found = asking.get("/api/v1/experiments/front/front").json
    assert (found["trials"], found["infeasible"], found["limits"]) == ([1], [0], {"ms": "<= 20"})
    assert found["hypervolume"] == pytest.approx(0.01)
    assert [row["sequence_id"] for row in found["history"]] == [1]
    experiments.close()


@pytest.mark.parametrize("keep_close", [True, False])
def test_closest_trial_to_the_defaults_with_the_changes_that_matter(tmp_path: Path, keep_close: bool) -> None:
    config = a_config(defaults={"lr": 0.0, "units": 16}, keep_close=keep_close)
    made = MadeExperiment(tmp_path / "experiments" / "near", config)
    values = [1.0, 0.01, 0.0]
    trials = [a_trial(n, value=each) for n, each in enumerate(values)]
    made.commit(a_trial(0, value=1.0, source="defaults"), *trials[1:])
    made.store.close()
    experiments = Experiments(made.folder.path.parent)
    found = Asking(experiments).get("/api/v1/experiments/near/closest").json
    if keep_close:
        assert (found["trial"]["sequence_id"], found["best"]["sequence_id"]) == (1, 2)
        assert found["changes"] == [{"parameter": "lr", "default": 0.0, "value": 0.1}]
    else:
        assert found is None
    experiments.close()


def test_trials_are_filtered_and_paged(asking: Asking) -> None:
    found = asking.get(f"{WHERE}/trials", status=["SUCCEEDED", "FAILED"], sort="value", limit=2).json
    assert ([trial["sequence_id"] for trial in found["trials"]], found["total"]) == ([1, 0], 3)
    assert found["trials"][0]["parameters"] == {"lr": None, "layers": {"units": 2**70}}
    assert asking.get(f"{WHERE}/trials", where=["value < 0.3", "status = SUCCEEDED"]).json["total"] == 1
    assert asking.get(f"{WHERE}/trials/T0002").json["error"] == "KeyError: 'ä'"


def test_results_since_a_cursor_and_thinned(asking: Asking) -> None:
    first = asking.get(f"{WHERE}/trials/3/metrics", limit=2).json
    assert [row["value"] for row in first["results"]] == [3.0, {"default": 2.0, "note": "x"}]
    rest = asking.get(f"{WHERE}/trials/3/metrics", since=first["cursor"]).json
    assert [row["value"] for row in rest["results"]] == [None]
    assert asking.get(f"{WHERE}/trials/3/curve").json["values"] == [3.0, 2.0, None]
    assert [curve["total"] for curve in asking.get(f"{WHERE}/curves", trial=[3, 0]).json["curves"]] == [3, 0]


def test_events_and_logs(made: MadeExperiment, asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("_PERIOD", "_COST"):
        monkeypatch.setattr(f"pitchpipe.store.reading.feed.{pause}", 0.0)  # each request looks
    cursor = asking.get(f"{WHERE}/events").json["cursor"]
    made.commit(a_trial(4, "WAITING"))
    assert [event["kind"] for event in asking.get(f"{WHERE}/events", since=cursor).json["events"]] == [
        "trial"
    ]
    assert asking.get(f"{WHERE}/logs/manager.log", lines=1).json["text"] == "two\n"
    assert asking.get(f"{WHERE}/logs").json[0]["name"] == "manager.log"
    assert asking.get(f"{WHERE}/trials/0/logs").json == []


@pytest.mark.parametrize("form", ["json", "csv"])
def test_export_is_what_the_command_writes(
    form: str, made: MadeExperiment, asking: Asking, tmp_path: Path
) -> None:
    path = tmp_path / f"all.{form}"
    assert run(["export", str(made.folder.path), "-o", str(path)]) == 0
    found = asking.get(f"{WHERE}/export", format=form)
    assert found.headers["content-disposition"] == f'attachment; filename="made1234.{form}"'
    assert found.body == path.read_bytes()


def test_bodies_that_are_not_json_are_refused(asking: Asking) -> None:
    for raw in (b"{", b"\xff", b"[1]", b'{"parameters": NaN}', b"null"):
        assert asking.ask("POST", f"{WHERE}/trials", raw=raw).status == 422


def test_limits_without_a_manager_are_changed_for_the_next_run(asking: Asking) -> None:
    reply = asking.ask("PATCH", WHERE, {"max_trial_number": 50, "max_experiment_duration": "2h"})
    assert (reply.status, reply.json["max_experiment_duration"]) == (200, 7200.0)
    assert asking.get(f"{WHERE}/config").json["maxTrialNumber"] == 50


def test_changes_reach_the_manager(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    from pitchpipe.server.api import experiment_routes

    calls = list[tuple[str, Any]]()
    added = {"sequence_id": 7, "trial_id": "AbCdE"}
    monkeypatch.setattr(
        experiment_routes, "add_trial", lambda folder, values: calls.append(("add", values)) or added
    )
    monkeypatch.setattr(
        experiment_routes, "rerun_trial", lambda folder, trial: calls.append(("rerun", trial)) or added
    )
    monkeypatch.setattr(
        experiment_routes, "kill_trial", lambda folder, trial: calls.append(("kill", trial)) or added
    )
    monkeypatch.setattr(
        experiment_routes, "stop_experiment", lambda folder, reason: calls.append(("stop", reason))
    )
    imported = 1, ["results[1]: lr"]
    monkeypatch.setattr(
        experiment_routes, "import_results", lambda folder, rows: calls.append(("import", rows)) or imported
    )
    reply = asking.ask("POST", f"{WHERE}/trials", {"parameters": {"lr": 1}})
    assert (reply.status, reply.headers["location"]) == (201, f"{WHERE}/trials/7")
    assert asking.ask("POST", f"{WHERE}/trials/T0003/rerun").status == 201
    assert asking.ask("POST", f"{WHERE}/trials/T0003/kill").status == 202
    assert asking.ask("POST", f"{WHERE}/stop", {"reason": "enough"}).status == 202
    rows = [{"parameter": {"lr": 1}, "value": 2}]
    said = {"imported": 1, "left_out": ["results[1]: lr"]}
    assert asking.ask("POST", f"{WHERE}/import", {"data": rows}).json == said
    assert calls == [("add", {"lr": 1}), ("rerun", 3), ("kill", 3), ("stop", "enough"), ("import", rows)]


def test_manager_that_does_not_reply_is_distinguished_from_a_refusal(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pitchpipe.server.api import experiment_routes

    def hang(folder: Any, trial: Any) -> Any:
        raise ControlError("the manager of made1234 does not answer", "unreachable")

    monkeypatch.setattr(experiment_routes, "kill_trial", hang)
    assert asking.ask("POST", f"{WHERE}/trials/3/kill").status == 503


def test_database_that_cannot_be_read_is_said(made: MadeExperiment, asking: Asking, tmp_path: Path) -> None:
    broken = made.folder.path.parent / "broken"
    broken.mkdir()
    (broken / "experiment.db").write_text("nonsense" * 1000)
    reply = asking.get("/api/v1/experiments/broken")
    assert (reply.status, "is damaged" in reply.error) == (503, True)
    assert [each["id"] for each in asking.get("/api/v1/experiments").json] == ["made1234"]


def test_reply_is_not_modified_until_something_changes(made: MadeExperiment, asking: Asking) -> None:
    first = asking.get(f"{WHERE}/trials")
    tag = {"if-none-match": first.headers["etag"]}
    again = asking.get(f"{WHERE}/trials", tag)
    assert (again.status, again.body) == (304, b"")


def test_answer_is_worked_out_once_a_change() -> None:
    now, version, worked = [0.0], [1], list[int]()
    responses = ResponseCache(lambda: version[0], lambda: now[0])

    def ask(lasting: float = 100.0) -> Any:
        return json.loads(responses.get("key", lambda: worked.append(1) or len(worked), lasting).body)

    assert [ask(), ask()] == [1, 1]
    version[0] = 2
    assert ask() == 1  # it was looked after a moment ago
    now[0] = 1.0
    assert ask() == 2
    now[0] = 50.0
    assert ask() == 2
    assert ask(lasting=10.0) == 3


def test_response_is_computed_once_for_the_same_function_and_arguments(made: MadeExperiment) -> None:
    experiments, computed = Experiments(made.folder.path.parent), list[int]()
    served = experiments.served("made1234")

    def double(view: ExperimentView, number: int) -> int:
        assert view is served.view
        computed.append(number)
        return 2 * number

    assert [served.cached(double, number) for number in (1, 2, 1, 2)] == [2, 4, 2, 4]
    assert computed == [1, 2]
    experiments.close()


def test_conditions_that_python_holds_to_be_equal_have_a_response_each(made: MadeExperiment) -> None:
    made.commit(a_trial(0, parameters={"x": True}), a_trial(1, parameters={"x": 1}))
    experiments = Experiments(made.folder.path.parent)
    asking = Asking(experiments)
    pages = [asking.get(f"{WHERE}/trials", where=f"parameters.x = {value}") for value in ("1", "true", "1")]
    assert [[trial["sequence_id"] for trial in page.json["trials"]] for page in pages] == [[1], [0], [1]]
    experiments.close()


def test_response_with_what_is_not_in_the_database_does_not_last(
    asking: Asking, made: MadeExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tagged() -> list[int]:
        page = asking.get(f"{WHERE}/trials", where="tags = odd").json
        return [trial["sequence_id"] for trial in page["trials"]]

    monkeypatch.setattr("pitchpipe.server.api.trial_routes._NOTES_LAST", 0.0)
    assert tagged() == []
    Annotations(made.folder).write(1, Annotation("look at this again", ("odd",)))
    assert tagged() == [1]


def test_response_that_takes_long_is_kept_longer() -> None:
    now, version, worked = [0.0], [1], list[int]()
    responses = ResponseCache(lambda: version[0], lambda: now[0])

    def work_out() -> int:
        now[0] += 0.1
        worked.append(1)
        return len(worked)

    for moment, expected in ((0.0, 1), (0.9, 1), (1.2, 2)):
        now[0], version[0] = moment, version[0] + 1
        assert json.loads(responses.get("key", work_out).body) == expected


def test_least_recently_used_responses_are_dropped_beyond_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pitchpipe.server.experiments._MOST_BYTES", 1000)
    responses, computed = ResponseCache(lambda: 1), list[int]()

    def get(number: int) -> None:
        responses.get(number, lambda: computed.append(number) or "x" * 98)  # 100 bytes of JSON

    for number in range(100):
        get(number)
    for number in range(99, 89, -1):
        get(number)
    assert computed == list(range(100))
    get(89)
    assert computed[100:] == [89]


def test_requests_that_fail_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pitchpipe.server.experiments._MOST_ENTRIES", 10)
    responses, computed = ResponseCache(lambda: 1), list[str]()

    def fail() -> None:
        raise LookupError

    responses.get("first", lambda: computed.append("first"))
    for number in range(9):
        with pytest.raises(LookupError):
            responses.get(number, fail)
    responses.get("first", lambda: computed.append("first"))
    assert computed == ["first"]
    for number in range(10):
        with pytest.raises(LookupError):
            responses.get(number, fail)
    responses.get("first", lambda: computed.append("first"))
    assert computed == ["first", "first"]


def test_folder_made_again_under_the_same_id_is_seen(made: MadeExperiment, asking: Asking) -> None:
    import shutil

    assert asking.get(WHERE).json["trials"] == 4
    made.store.close()
    shutil.rmtree(made.folder.path)
    MadeExperiment(made.folder.path).store.close()
    assert asking.get(WHERE).json["trials"] == 0
