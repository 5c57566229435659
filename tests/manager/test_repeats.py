"""Repeats of each configuration: seeds, the race, one result for the tuner, wherever the manager is killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.simulated import SimulatedRun
from pitchpipe.manager.manager import Manager
from pitchpipe.protocol import repeat_of, seed_of_repeat
from pitchpipe.runner.experiment_state import ExperimentStatus

from .experiments import CopyingStore, config, created, plugin, run, story, trials_of

# Proposes 5, 3, 4 and 0, and writes down what it learns.
TUNER = """
from pathlib import Path
from pitchpipe import Assessor, Tuner

class Listing(Tuner):
    def update_search_space(self, search_space):
        self.heard = []

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": [5, 3, 4, 0][parameter_id % 4]}

    def receive_repeats(self, parameter_id, parameters, values):
        self.heard.append(("repeats", parameter_id, values))
        self.write()

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        self.heard.append(("result", parameter_id, parameters["x"], value))
        self.write()

    def trial_end(self, parameter_id, success, **kwargs):
        self.heard.append(("end", parameter_id, success))
        self.write()

    def import_data(self, data):
        self.heard.append(("import", [row["value"] for row in data]))
        self.write()

    def write(self):
        Path(__file__).with_name("heard.txt").write_text(repr(self.heard))

class Strict(Assessor):
    def __init__(self):
        self.judged = []

    def assess_trial(self, trial_job_id, history):
        return history[-1] < 6

    def receive_trial_result(self, trial_job_id, value):
        self.judged.append(value)
        Path(__file__).with_name("judged.txt").write_text(repr(self.judged))
"""


def behave(parameters: Mapping[str, Any]) -> SimulatedRun:
    x = parameters["x"]
    return SimulatedRun(float(x), [x + 1.0] * 2, step=1.0 + x / 4, error="no luck" if x == 3 else None)


def listing(directory: Path, **fields: Any) -> Manager:
    data = {
        "search_space": {"x": {"_type": "randint", "_value": [0, 10]}},
        "tuner": plugin(directory, "listing.Listing", TUNER),
        "repeats": {"count": 3},
        "seed": 1,
        "max_trial_number": 11,
        "trial_concurrency": 2,
        **fields,
    }
    return created(directory, config(**data), behave)


def heard(directory: Path) -> list[Any]:
    return eval((directory / "code" / "heard.txt").read_text())


def made(directory: Path) -> list[tuple[Any, int | None, str]]:
    """Return repeat, seed and status of all trials."""
    trials = trials_of(directory)
    return [(repeat_of(one.record), seed_of_repeat(one.record), one.status.value) for one in trials]


def test_tuner_learns_one_result_for_each_configuration(tmp_path: Path) -> None:
    assert run(listing(tmp_path, trial_concurrency=1)) is ExperimentStatus.DONE
    assert heard(tmp_path) == [
        ("repeats", 0, [5.0, 5.0, 5.0]),
        ("result", 0, 5, 5.0),
        ("end", 0, True),
        ("end", 1, False),  # both of its first repeats have failed
        ("repeats", 2, [4.0, 4.0, 4.0]),
        ("result", 2, 4, 4.0),
        ("end", 2, True),
        ("repeats", 3, [0.0, 0.0, 0.0]),
        ("result", 3, 0, 0.0),
        ("end", 3, True),
    ]
    trials = made(tmp_path)
    assert [repeat for repeat, _, _ in trials] == [
        *[(0, 0), (0, 1), (0, 2)],
        *[(3, 0), (3, 1)],
        *[(5, 0), (5, 1), (5, 2)],
        *[(8, 0), (8, 1), (8, 2)],
    ]
    seeds = {repeat[1]: seed for repeat, seed, _ in trials}
    assert len(set(seeds.values())) == 3
    assert all(seeds[repeat[1]] == seed for repeat, seed, _ in trials)


def test_repeat_that_the_assessor_stops_ends_its_family(tmp_path: Path) -> None:
    assessor = {"class_name": "listing.Strict", "code_directory": str(tmp_path / "code")}
    manager = listing(tmp_path, assessor=assessor, trial_concurrency=1, max_trial_number=6)
    assert run(manager) is ExperimentStatus.DONE
    assert [(repeat, status) for repeat, _, status in made(tmp_path)] == [
        ((0, 0), "EARLY_STOPPED"),
        ((1, 0), "FAILED"),
        ((1, 1), "FAILED"),
        ((3, 0), "SUCCEEDED"),
        ((3, 1), "SUCCEEDED"),
        ((3, 2), "SUCCEEDED"),
    ]
    assert heard(tmp_path)[:2] == [("end", 0, False), ("end", 1, False)]
    results = (tmp_path / "code" / "judged.txt").read_text()
    assert results == "[4.0, 4.0, 4.0]"  # the assessor gets each of them


@pytest.mark.slow
def test_killed_at_any_commit_no_repeat_runs_twice_and_none_is_lost(tmp_path: Path) -> None:
    manager = listing(tmp_path, defaults={"x": 2}, max_trial_number=10)
    store = CopyingStore(manager, tmp_path / "copies")
    assert run(manager) is ExperimentStatus.DONE
    expected = story(tmp_path)
    commands = sorted(expected["commands"])
    assert [json.loads(payload) for _, code, payload in commands if code == "FD"] == [
        [{"parameter": {"x": 2}}],
        [{"parameter": {"x": 2}, "value": "2.0"}],
    ]
    assert len(store.copies) > 20
    store.come_to(expected, behave, store.copies[::3])
