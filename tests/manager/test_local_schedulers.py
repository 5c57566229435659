"""Hyperband and population-based training with real trials on this machine: functions, scripts, classes."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.trial import Trial, TrialStatus
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import ExperimentView
from pitchpipe.store.store import Store

from .experiments import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_agents")]

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
HYPERBAND = {
    "tuner": {"name": "Hyperband", "class_args": {"R": 9, "eta": 3, "optimize_mode": "minimize"}},
    "max_trial_number": 9,
}
GENERATIONS = {"population_size": 4, "interval": 3, "optimize_mode": "minimize"}
PBT = {
    "tuner": {"name": "PBT", "class_args": {**GENERATIONS, "generations": 3}},
    "max_trial_number": 4,
}

# Nine epochs, or as many as the budget says; only its checkpoint says where it continues. A trial that does not obey
# its budget makes one epoch more, and then waits for its pause: how late that is does not matter.
SCRIPT = """
import os, signal, time, pitchpipe
x = pitchpipe.get_next_parameter()["x"]
checkpoint = pitchpipe.get_checkpoint()
epoch, trace = (checkpoint.to_dict()["epoch"], checkpoint.to_dict()["trace"]) if checkpoint else (0, [])
last = int(pitchpipe.get_budget()) if "OBEY" in os.environ else 9
while epoch < last:
    time.sleep(0.05)  # the epoch
    epoch += 1
    trace = [*trace, x]
    pitchpipe.report_intermediate_result(abs(x - 0.3) + 1 / epoch)
    pitchpipe.save_checkpoint({"epoch": epoch, "trace": trace})
    if epoch > pitchpipe.get_budget():
        signal.pause()
pitchpipe.report_final_result({"default": abs(x - 0.3) + 1 / epoch, "trace": trace})
"""

# Trains for its budget, and reports nothing on the way.
FINALS = """
import pitchpipe
x = pitchpipe.get_next_parameter()["x"]
checkpoint = pitchpipe.get_checkpoint()
epochs = int(pitchpipe.get_budget())
assert (checkpoint.to_dict()["epochs"] if checkpoint else 0) < epochs
pitchpipe.save_checkpoint({"epochs": epochs})
pitchpipe.report_final_result({"default": abs(x - 0.3) + 1 / epochs, "epochs": epochs})
"""


def make_function() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the same as a function, pickled with its code: agents cannot import this file."""

    def function(parameters: dict[str, Any]) -> dict[str, Any]:
        import time

        import pitchpipe

        checkpoint = pitchpipe.get_checkpoint()
        state = checkpoint.to_dict() if checkpoint else {"epoch": 0, "trace": []}
        while state["epoch"] < 9:
            time.sleep(0.05)
            state = {"epoch": state["epoch"] + 1, "trace": [*state["trace"], parameters["x"]]}
            pitchpipe.report_intermediate_result(abs(parameters["x"] - 0.3) + 1 / state["epoch"])
            pitchpipe.save_checkpoint(state)
            for _ in range(10_000 if state["epoch"] > pitchpipe.get_budget() else 0):
                # It waits for the manager, and ends the trial once it is paused.
                pitchpipe.save_checkpoint(state)
        return {"default": abs(parameters["x"] - 0.3) + 1 / 9, "trace": state["trace"]}

    return function


def make_class() -> type:
    """Return the same as a class, which always obeys its budget."""
    from pitchpipe import Trainable

    class Stages(Trainable):
        def setup(self, parameters: dict[str, Any]) -> None:
            self.x, self.trace = parameters["x"], list[float]()

        def step(self) -> dict[str, Any]:
            self.trace = [*self.trace, self.x]
            epoch = len(self.trace)
            return {"default": abs(self.x - 0.3) + 1 / epoch, "trace": self.trace, "done": epoch >= 9}

        def save_checkpoint(self, directory: str) -> dict[str, Any]:
            return {"trace": self.trace}

        def load_checkpoint(self, checkpoint: Any) -> None:
            self.trace = checkpoint["trace"]

    return Stages


@pytest.fixture
def trials_of(tmp_path: Path) -> Callable[..., list[Trial]]:
    """Return a function that runs an experiment of scripts, of functions or of classes to its end."""

    def run_one(what: str, **fields: Any) -> list[Trial]:
        (tmp_path / "trial.py").write_text(SCRIPT)
        command = f"{shlex.quote(sys.executable)} trial.py"
        commands = {"script": command, "obeying": f"OBEY=1 {command}"}
        data = {
            "search_space": SPACE,
            "seed": 3,
            "trial_concurrency": 2,
            "training_service": {"platform": "local"},
            "trial_code_directory": str(tmp_path),
            **({"trial_command": commands[what]} if what in commands else {}),
            **fields,
        }
        trained = {"function": make_function(), "class": make_class()}.get(what)
        config = ExperimentConfig.from_dict(data, needs_command=trained is None)
        manager = create_experiment(config, directory=tmp_path, function=trained)
        assert run(manager) is ExperimentStatus.DONE
        with closing(Store.view(manager.folder.database)) as view:
            return list(view.trials())

    return run_one


def trace(trial: Trial) -> list[float]:
    """With which parameter each epoch of a trial's model was trained."""
    return json.loads(trial.final or "")["trace"]


@pytest.mark.parametrize("what", ["script", "function", "class"])
def test_hyperband_resumes_paused_trials_from_their_checkpoints(what: str, trials_of: Any) -> None:
    trials = trials_of(what, **HYPERBAND)
    assert len(trials) == 9
    (best,) = [trial for trial in trials if trial.status is TrialStatus.SUCCEEDED]
    assert (best.attempt, best.budget, len(trace(best))) == (3, 9.0, 9)
    assert {trial.status for trial in trials if trial is not best} == {TrialStatus.EARLY_STOPPED}
    # A trial that does not obey its budget may make another result before its pause is there.
    assert all(trial.next_sequence < 6 for trial in trials if trial is not best)


def test_hyperband_compares_scripts_that_report_final_results_only(trials_of: Any, tmp_path: Path) -> None:
    (tmp_path / "finals.py").write_text(FINALS)
    trials = trials_of("script", **{**HYPERBAND, "trial_command": f"{shlex.quote(sys.executable)} finals.py"})
    (best,) = [trial for trial in trials if trial.status is TrialStatus.SUCCEEDED]
    assert (best.attempt, best.budget, json.loads(best.final)["epochs"]) == (3, 9.0, 9)
    assert {trial.status for trial in trials if trial is not best} == {TrialStatus.EARLY_STOPPED}
    assert {trial.final for trial in trials if trial is not best} == {None}


@pytest.mark.parametrize("what", ["obeying", "function", "class"])
def test_pbt_trains_on_from_checkpoints_of_others(what: str, trials_of: Any, tmp_path: Path) -> None:
    trials = trials_of(what, **PBT)
    assert [trial.status for trial in trials] == [TrialStatus.SUCCEEDED] * 4
    traces = [trace(trial) for trial in trials]
    # An heir of a class that is done by then still makes the step in which it would be done.
    assert {len(one) for one in traces} <= ({9, 10} if what == "class" else {9})
    assert max(len(set(one)) for one in traces) > 1  # a model that changed its parameters on the way
    (folder,) = ExperimentFolder.all(tmp_path)
    with ExperimentView(folder) as view:
        schedules = [view.schedule(trial.sequence_id) for trial in trials]
    for schedule, trained in zip(schedules, traces, strict=True):
        assert [schedule.parameters_at(epoch)["x"] for epoch in range(len(trained))] == trained


def test_pbt_example_of_the_docs_trains_generations(trials_of: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "tuners" / "pbt.md").read_text()
    example = page.partition("```yaml\n")[2].partition("```")[0]
    trials = trials_of("class", **yaml.safe_load(example))
    assert len(trials) == 8
    assert {trial.status for trial in trials} == {TrialStatus.SUCCEEDED}
    assert {trial.attempt for trial in trials} == {2}
    # An heir that starts late gets a later checkpoint: it reports less, and its model has trained as long. One whose
    # parent is done by then still makes the step in which it would be done.
    assert {len(trace(trial)) for trial in trials} <= {9, 10}
    assert max(len(set(trace(trial))) for trial in trials) > 1


def test_class_that_is_done_at_the_end_of_a_generation_makes_no_further_step(trials_of: Any) -> None:
    # Without heirs: one that continues from the end of another makes the step in which it would be done once more.
    arguments = {**GENERATIONS, "fraction": 0}
    trials = trials_of("class", tuner={"name": "PBT", "class_args": arguments}, max_trial_number=4)
    assert {trial.status for trial in trials} == {TrialStatus.SUCCEEDED}
    assert {(len(trace(trial)), trial.attempt) for trial in trials} == {(9, 3)}
