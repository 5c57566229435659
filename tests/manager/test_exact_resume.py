"""Exact resume: killed at any commit point, an experiment continues as if nothing had happened.

The whole experiment is run once; at each commit, before and after, its folder is copied: that is what a killed manager
leaves behind. Each third copy that differs from the one before is resumed, and must come to the same story.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from pitchpipe.executors.simulated import SimulatedRun
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.store.store import Store

from .experiments import CopyingStore, config, created, plugin, run, story

# Pauses each trial at its third result; the better of two continues, the other takes over its checkpoint.
SCHEDULER = """
from quiet import Quiet

class Scheduler(Quiet):
    wants_periodical = True

    def __init__(self):
        self.seen, self.paused, self.resumed = {}, [], set()

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": (parameter_id * 7) % 5, "id": parameter_id}

    def receive_intermediate_result(self, parameter_id, parameters, value, trial_job_id, sequence, **kwargs):
        self.seen[trial_job_id] = value
        if sequence == 2 and trial_job_id not in self.resumed and parameter_id % 4 != 3:
            self.pause_trial(trial_job_id, f"third result {value}")
            self.paused.append(trial_job_id)
            if len(self.paused) == 2:
                self._exchange()

    def _exchange(self):
        better, worse = sorted(self.paused, key=self.seen.get)
        self.paused.clear()
        self.resumed |= {better, worse}
        self.resume_trial(better, budget=9)
        self.resume_trial(worse, {"x": 1, "id": -1}, checkpoint_of=better)

    def trials_stalled(self):
        for trial in self.paused:
            self.resumed.add(trial)
            self.resume_trial(trial)
        self.paused.clear()
"""


def behave(parameters: Mapping[str, Any]) -> SimulatedRun:
    """Six results; some attempts are lost, some trials fail twice, most save checkpoints."""
    x, number = parameters["x"], parameters["id"]
    return SimulatedRun(
        x + 0.5,
        [x + 6.0 / (step + 1) for step in range(6)],
        step=1.0 + x / 4,
        error="MemoryError" if number == 3 else None,
        checkpoint_every=2 if number % 3 else 0,
        losses=(4.5,) if number in (1, 5) else (),
    )


Whole = tuple[dict[str, Any], CopyingStore]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    directory = tmp_path_factory.mktemp("exact")
    given = config(
        search_space={"x": {"_type": "randint", "_value": [0, 5]}},
        tuner=plugin(directory, "scheduler.Scheduler", SCHEDULER),
        max_trial_number=7,
        trial_concurrency=3,
        max_failures={"OOM": 1},
    )
    manager = created(directory, given, behave)
    store = CopyingStore(manager, directory / "copies")
    assert run(manager) is ExperimentStatus.DONE
    yield story(directory), store
    shutil.rmtree(directory)


def test_the_experiment_has_retries_pauses_and_exchanges(whole: Whole) -> None:
    expected, store = whole
    outcomes = [(row[2], row[7]) for row in expected["attempts"]]
    assert {("retried", "INFRA"), ("retried", "OOM"), ("paused", None)} <= set(outcomes)
    payloads = [json.loads(row[2]) for row in expected["commands"] if row[1] == "ME"]
    heard = [(m["trial_job_id"], m["type"], m["sequence"]) for m in payloads]
    assert len(heard) == len(set(heard))
    assert any(row[-1] for row in expected["metrics"])  # superseded ones, left out where results are read
    with closing(Store.view(store.path)) as view:
        counted = [(row[0], row[1], row[2]) for row in view.metrics()]
    assert len(counted) == len(set(counted)) < len(expected["metrics"])


@pytest.mark.slow
def test_killed_at_any_commit_the_experiment_comes_to_the_same_story(whole: Whole) -> None:
    expected, store = whole
    assert len(store.copies) > 40
    store.come_to(expected, behave, store.copies[::3])  # some before and some after a commit
