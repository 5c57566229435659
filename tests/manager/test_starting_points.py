"""Defaults and initial points run first, once, and the tuner learns from them, wherever the manager is killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager.control import Extension, extend_experiment
from pitchpipe.manager.experiments import create_experiment, resume_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.experiment_status import ExperimentStatus
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import ExperimentView, TrialQuery
from pitchpipe.store.reading.defaults import gain_text, gains_over_defaults

from .test_exact_resume import CopyingStore, run, story

# Proposes the sum of the results that it has imported.
TUNER = """
from pitchpipe import Tuner

class Adding(Tuner):
    def __init__(self):
        self.learned = {}

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": 1 + sum(self.learned.values()), "id": parameter_id}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass

    def import_data(self, data):
        self.learned |= {row["parameter"]["x"]: row["value"] for row in data}
"""
SPACE = {"x": {"_type": "uniform", "_value": [0, 1000]}}


def behave(parameters: Mapping[str, Any]) -> SimulatedRun:
    return SimulatedRun(float(parameters["x"]), [1.0], step=2.0)


def manager_of(directory: Path, now: float = 1000.0, config: ExperimentConfig | None = None) -> Manager:
    clock = VirtualClock(now)
    executor = SimulatedTrialExecutor(behave, clock)
    if config is None:
        found = ExperimentFolder.find(directory, "exp")
        return resume_experiment(found, executor=executor, clock=clock)
    return create_experiment(config, directory=directory, experiment_id="exp", executor=executor, clock=clock)


def config(directory: Path, **fields: Any) -> ExperimentConfig:
    (directory / "code").mkdir()
    (directory / "code" / "adding.py").write_text(TUNER)
    data = {
        "search_space": SPACE,
        "tuner": {"class_name": "adding.Adding", "code_directory": str(directory / "code")},
        "max_trial_number": 5,
        "defaults": {"x": 100},
        "initial_points": [{"x": 10}, {"x": 200}, {"x": 100}],
        **fields,
    }
    return ExperimentConfig.from_dict(data, needs_command=False)


def tried(directory: Path) -> list[tuple[float, str]]:
    with ExperimentView(directory / "exp") as view:
        trials = view.trials(TrialQuery(limit=None)).trials
    return [(trial["parameters"]["x"], trial["parameter_source"]) for trial in trials]


def test_points_run_first_and_the_tuner_learns_their_results(tmp_path: Path) -> None:
    assert run(manager_of(tmp_path, config=config(tmp_path))) is ExperimentStatus.DONE
    assert tried(tmp_path) == [
        (100, "defaults"),
        (10, "initial"),
        (200, "initial"),
        (311, "algorithm"),
        (311, "algorithm"),
    ]
    with ExperimentView(tmp_path / "exp") as view:
        summary = view.summary()
    assert gains_over_defaults(summary) == {"default": 90.0}
    assert gain_text(summary) == "90 (90 %) better than the defaults (100, trial 0)"


def test_points_run_at_the_same_time_before_the_tuner_is_asked(tmp_path: Path) -> None:
    parallel = config(tmp_path, trial_concurrency=3, max_trial_number=6)
    assert run(manager_of(tmp_path, config=parallel)) is ExperimentStatus.DONE
    assert [source for _, source in tried(tmp_path)] == ["defaults", "initial", "initial", *["algorithm"] * 3]


def test_points_beyond_the_last_trial_run_when_there_are_more(tmp_path: Path) -> None:
    assert run(manager_of(tmp_path, config=config(tmp_path, max_trial_number=2))) is ExperimentStatus.DONE
    assert tried(tmp_path) == [(100, "defaults"), (10, "initial")]
    extend_experiment(ExperimentFolder(tmp_path / "exp"), Extension(max_trial_number=4))
    assert run(manager_of(tmp_path)) is ExperimentStatus.DONE
    assert tried(tmp_path)[2:] == [(200, "initial"), (311, "algorithm")]


@pytest.mark.parametrize("name", ["Auto", "GP"])
def test_tuner_does_not_propose_a_point_that_runs_already(tmp_path: Path, name: str) -> None:
    space = {
        "a": {"_type": "choice", "_value": ["p", "q"]},
        "x": {"_type": "quniform", "_value": [0, 2, 0.5]},
    }
    centre = {"a": "p", "x": 1.0}
    # The starting point runs longer than all others, so that the tuner does not know its result.
    given = config(
        tmp_path,
        search_space=space,
        tuner={"name": name},
        defaults=centre,
        initial_points=[],
        max_trial_number=10,
        trial_concurrency=2,
        seed=1,
    )
    clock = VirtualClock(1000.0)
    executor = SimulatedTrialExecutor(
        lambda one: SimulatedRun(one["x"], step=99.0 if one == centre else 1.0), clock
    )
    manager = create_experiment(
        given, directory=tmp_path, experiment_id="exp", executor=executor, clock=clock
    )
    assert run(manager) is ExperimentStatus.DONE
    with ExperimentView(tmp_path / "exp") as view:
        trials = view.trials(TrialQuery(limit=None)).trials
    points = [(trial["parameters"]["a"], trial["parameters"]["x"]) for trial in trials]
    assert len(points) == len(set(points)) == 10  # all that there are


@pytest.mark.slow
@pytest.mark.timeout(600)  # only bounds a hang: each of the copies starts a dispatcher
def test_killed_at_any_commit_no_point_runs_twice_and_none_is_lost(tmp_path: Path) -> None:
    manager = manager_of(tmp_path, config=config(tmp_path, trial_concurrency=2))
    store = CopyingStore(manager, tmp_path / "copies")
    manager.store = store  # type: ignore[assignment]
    assert run(manager) is ExperimentStatus.DONE
    expected = story(tmp_path)
    imported = [json.loads(row[2])[0] for row in sorted(expected["commands"]) if row[1] == "FD"]
    assert [row["parameter"]["x"] for row in imported if "value" in row] == [100, 10, 200]
    for when, directory, now in store.copies:
        assert run(manager_of(directory, now)) is ExperimentStatus.DONE, when
        assert story(directory) == expected, f"killed {when}"


def test_killed_before_the_first_turn_all_points_run(tmp_path: Path) -> None:
    manager = manager_of(tmp_path, config=config(tmp_path))
    manager.store.close()
    manager.folder.disown()
    assert run(manager_of(tmp_path)) is ExperimentStatus.DONE
    assert [source for _, source in tried(tmp_path)] == ["defaults", "initial", "initial", *["algorithm"] * 2]
