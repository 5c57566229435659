"""TuneServer's routes and TuneClient, with an experiment that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pitchpipe
from pitchpipe.compat.tune.server import TuneServerError
from pitchpipe.compat.tune.variants import variants
from pitchpipe.manager.control.connection import ControlError
from pitchpipe.server.experiments import Experiments

from ..dispatcher_threads import dispatchers_on_threads
from ..stored import MadeExperiment, a_trial, results
from .asking import Asking


def when(found: Callable[[], Any]) -> Any:
    """Return what `found` returns, once that is true."""
    moment = threading.Event()
    for _ in range(1200):
        if value := found():
            return value
        moment.wait(0.05)
    raise AssertionError("it did not happen in a minute")


@pytest.mark.slow
@pytest.mark.usefixtures("forked_agents")
def test_client_sees_and_steers_a_running_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatchers_on_threads(monkeypatch)

    def report_without_end(parameters: dict[str, Any]) -> None:
        import time

        while True:
            pitchpipe.report_intermediate_result(parameters["x"])
            time.sleep(0.02)

    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    experiment = pitchpipe.Experiment(
        report_without_end,
        space,
        platform="local",
        tuner={"name": "Random"},
        directory=tmp_path,
        kill_grace=1,
    )
    outcome = list[Any]()
    running = threading.Thread(target=lambda: outcome.append(experiment.run()))
    experiment.create()
    running.start()
    with pitchpipe.TuneServer(experiment, 0) as server:
        client = pitchpipe.TuneClient("127.0.0.1", server.port)
        assert (client.server_address, client.server_port) == ("127.0.0.1", server.port)

        def status(trial_id: str) -> str:
            return client.get_trial(trial_id)["trial"]["status"]

        first = when(lambda: client.get_all_trials(timeout=10)["trials"])[0]
        when(lambda: client.get_trial(first["id"])["trial"]["result"])
        added = client.add_trial("more", {"config": {"x": {"grid_search": [5, 6, 7]}}})["trials"]
        assert [(trial["status"], trial["config"]) for trial in added] == [
            ("PENDING", {"x": x}) for x in (5, 6, 7)
        ]
        client.stop_trial(first["id"])
        when(lambda: status(first["id"]) == "TERMINATED")
        when(lambda: status(added[0]["id"]) == "RUNNING")
        refusals = (
            (lambda: client.get_trial("nobody"), 404),
            (lambda: client.add_trial("x", {"config": 1}), 422),
        )
        for refused, code in refusals:
            with pytest.raises(TuneServerError) as error:
                refused()
            assert error.value.status == code
        assert len(client.stop_experiment()["trials"]) >= 4
        running.join(60)
    assert outcome[0].status == "STOPPED"
    assert pitchpipe.TuneServer.DEFAULT_PORT == 4321
    with pytest.raises(TuneServerError, match="cannot be reached"):
        client.get_all_trials()


@pytest.fixture
def asking(made: MadeExperiment) -> Asking:
    trial = a_trial(1, "RUNNING")
    made.commit(a_trial(0, value=0.5), trial, a_trial(2, "FAILED"), metrics=results(trial, [3.0, 2.0]))
    return Asking(Experiments(made.folder.path.parent))


def test_trials_are_shown_in_tunes_terms(asking: Asking) -> None:
    shown = asking.get("/trials").json["trials"]
    assert [trial["status"] for trial in shown] == ["TERMINATED", "RUNNING", "ERROR"]
    assert [trial["result"] and trial["result"]["default"] for trial in shown] == [0.5, 2.0, None]
    assert asking.get("/trials/T0001").json["trial"] == shown[1]
    assert shown[1]["trainable_name"] == "true"


def test_head_gets_an_empty_response(asking: Asking) -> None:
    for path in ("/trials", "/trials/T0001"):
        reply = asking.ask("HEAD", path)
        assert (reply.status, reply.body) == (200, b"")


def test_trial_that_has_ended_is_stopped_already(asking: Asking) -> None:
    reply = asking.ask("PUT", "/trials/T0000")
    assert (reply.status, reply.json["trials"][0]["status"]) == (200, "TERMINATED")


def test_samples_and_grids_make_all_combinations() -> None:
    spec = {
        "config": {"a": {"grid_search": [1, 2]}, "b": {"c": {"grid_search": ["x", "y"]}, "d": 0}},
        "num_samples": 2,
    }
    made = variants(spec)
    assert len(made) == 8
    assert made[:2] == [{"a": 1, "b": {"c": "x", "d": 0}}, {"a": 1, "b": {"c": "y", "d": 0}}]
    assert variants({}) == [{}]


def test_drawn_parameters_differ_and_repeat_with_a_seed() -> None:
    spec = {"config": {"lr": {"_type": "uniform", "_value": [0, 1]}}, "num_samples": 3}
    drawn = [config["lr"] for config in variants(spec, seed=1)]
    assert len(set(drawn)) == 3
    assert all(0 <= value <= 1 for value in drawn)
    assert variants(spec, seed=1) == variants(spec, seed=1)


@pytest.mark.parametrize(
    "spec",
    [
        {"config": 1},
        {"num_samples": 0},
        {"num_samples": True},
        {"num_samples": 10**9},
        {"config": {"x": {"grid_search": []}}},
        {"config": {"x": {"grid_search": list(range(1001))}}},
        {"config": {name: {"grid_search": list(range(100))} for name in "abcdefgh"}},
        {"config": {"x": {"_type": "nonsense", "_value": []}}},
    ],
)
def test_invalid_specs_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ControlError):
        variants(spec)


def test_config_nested_too_deeply_is_refused() -> None:
    config: dict[str, Any] = {}
    for _ in range(100):
        config = {"x": config}
    with pytest.raises(ControlError, match="levels deep"):
        variants({"config": config})
