"""The trackers of a config: made once for a manager, and closed by the one that ends an abandoned experiment."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pitchpipe.manager.hooks.hooks import Callback
from pitchpipe.runner.experiment_state import ExperimentStatus

from .experiments import resumed, run, run_with_crash, simulated, trials_of

ADAPTER = "pitchpipe.integrations.mlflow"
CONFIG = {
    "trial_concurrency": 2,
    "max_trial_number": 4,
    "kill_grace": 0,
    "trackers": {"mlflow": {"tracking_uri": "here"}},
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let a class take the place of the adapter to MLflow; return the objects that are made of it."""
    trackers: list[Any] = []

    class MLflowCallback(Callback):
        def __init__(self, tracking_uri: str) -> None:
            self.uri, self.open, self.closed = tracking_uri, set[str](), dict[str, str]()
            self.is_over = False
            trackers.append(self)

        def on_trial_start(self, trial: Any) -> None:
            self.open.add(trial["trial_id"])

        def on_trial_complete(self, trial: Any) -> None:
            self.open.discard(trial["trial_id"])
            self.closed[trial["trial_id"]] = trial["status"]

        def on_experiment_end(self, experiment: Any) -> None:
            self.is_over = True

    module = ModuleType(ADAPTER)
    monkeypatch.setattr(module, "MLflowCallback", MLflowCallback, raising=False)
    monkeypatch.setitem(sys.modules, ADAPTER, module)
    # No trial is left that could end in order.
    monkeypatch.setattr("pitchpipe.manager.timers._STOP_MARGIN", 0.0)
    return trackers


def test_tracker_is_made_once_with_its_options(tmp_path: Path, made: list[Any]) -> None:
    simulated(tmp_path, **CONFIG).folder.disown()  # creates the experiment, and resumes it
    assert [tracker.uri for tracker in made] == ["here", "here"]


def test_runs_of_a_dead_manager_are_closed_when_the_experiment_is_stopped(
    tmp_path: Path, made: list[Any]
) -> None:
    assert run_with_crash(simulated(tmp_path, **CONFIG), 6, after=True)
    left_open = made[-1].open
    assert left_open
    assert run(resumed(tmp_path, ending=True)) is ExperimentStatus.STOPPED
    assert left_open <= set(made[-1].closed)
    assert made[-1].is_over
    statuses = {trial.trial_id: trial.status.value for trial in trials_of(tmp_path)}
    assert all(statuses[trial] == status for trial, status in made[-1].closed.items())


def test_library_that_is_missing_does_not_keep_an_experiment_from_being_stopped(
    tmp_path: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_with_crash(simulated(tmp_path, **CONFIG), 6, after=True)
    monkeypatch.setitem(sys.modules, ADAPTER, None)
    manager = resumed(tmp_path, ending=True)
    assert manager.notes[-1].startswith("runs of trackers stay open: trackers.mlflow: ")
    assert run(manager) is ExperimentStatus.STOPPED
