"""Defaults and initial points run first, once, and the tuner learns from them, wherever the manager is killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.simulated import SimulatedRun
from pitchpipe.manager.control import Extension, extend_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import ExperimentView
from pitchpipe.telling.best_lines import gain_text, gains_over_defaults

from .experiments import Behaviour, CopyingStore, config, created, let_go, plugin, resumed, run, story, tried

# Proposes the sum of the results that it has imported.
TUNER = """
from quiet import Quiet

class Adding(Quiet):
    def __init__(self):
        self.learned = {}

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": 1 + sum(self.learned.values()), "id": parameter_id}

    def import_data(self, data):
        self.learned |= {row["parameter"]["x"]: row["value"] for row in data}
"""


def behave(parameters: Mapping[str, Any]) -> SimulatedRun:
    return SimulatedRun(float(parameters["x"]), [1.0], step=2.0)


def adding(directory: Path, behaviour: Behaviour = behave, **fields: Any) -> Manager:
    data = {
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1000]}},
        "tuner": plugin(directory, "adding.Adding", TUNER),
        "max_trial_number": 5,
        "defaults": {"x": 100},
        "initial_points": [{"x": 10}, {"x": 200}, {"x": 100}],
        **fields,
    }
    return created(directory, config(**data), behaviour)


def test_points_run_first_and_the_tuner_learns_their_results(tmp_path: Path) -> None:
    assert run(adding(tmp_path)) is ExperimentStatus.DONE
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
    assert run(adding(tmp_path, trial_concurrency=3, max_trial_number=6)) is ExperimentStatus.DONE
    assert [source for _, source in tried(tmp_path)] == ["defaults", "initial", "initial", *["algorithm"] * 3]


def test_points_beyond_the_last_trial_run_when_there_are_more(tmp_path: Path) -> None:
    assert run(adding(tmp_path, max_trial_number=2)) is ExperimentStatus.DONE
    assert tried(tmp_path) == [(100, "defaults"), (10, "initial")]
    extend_experiment(ExperimentFolder(tmp_path / "exp"), Extension(max_trial_number=4))
    assert run(resumed(tmp_path, behave)) is ExperimentStatus.DONE
    assert tried(tmp_path)[2:] == [(200, "initial"), (311, "algorithm")]


@pytest.mark.parametrize("name", ["Auto", "GP"])
def test_tuner_does_not_propose_a_point_that_runs_already(tmp_path: Path, name: str) -> None:
    space = {
        "a": {"_type": "choice", "_value": ["p", "q"]},
        "x": {"_type": "quniform", "_value": [0, 2, 0.5]},
    }
    centre = {"a": "p", "x": 1.0}
    # The starting point runs longer than all others, so that the tuner does not know its result.
    manager = adding(
        tmp_path,
        lambda one: SimulatedRun(one["x"], step=99.0 if one == centre else 1.0),
        search_space=space,
        tuner={"name": name},
        defaults=centre,
        initial_points=[],
        max_trial_number=10,
        trial_concurrency=2,
        seed=1,
    )
    assert run(manager) is ExperimentStatus.DONE
    points = list(zip(tried(tmp_path, "a"), tried(tmp_path, "x"), strict=True))
    assert len(points) == len(set(points)) == 10  # all that there are


@pytest.mark.slow
def test_killed_at_any_commit_no_point_runs_twice_and_none_is_lost(tmp_path: Path) -> None:
    manager = adding(tmp_path, trial_concurrency=2)
    store = CopyingStore(manager, tmp_path / "copies")
    assert run(manager) is ExperimentStatus.DONE
    expected = story(tmp_path)
    imported = [json.loads(row[2])[0] for row in sorted(expected["commands"]) if row[1] == "FD"]
    assert [row["parameter"]["x"] for row in imported if "value" in row] == [100, 10, 200]
    store.come_to(expected, behave)


def test_killed_before_the_first_turn_all_points_run(tmp_path: Path) -> None:
    let_go(adding(tmp_path))
    assert run(resumed(tmp_path, behave)) is ExperimentStatus.DONE
    assert [source for _, source in tried(tmp_path)] == ["defaults", "initial", "initial", *["algorithm"] * 2]
