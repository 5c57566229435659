"""Function trials that take no time: they queue in the agents, and are the same trials in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.protocol import parameters_of
from pitchpipe.runner.trial import TrialStatus
from pitchpipe.tuners import RandomTuner

from .experiments import config, run

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
NUMBER = 200


def train(parameters: dict[str, Any]) -> float:
    return parameters["x"]


train.__module__ = "__main__"


@pytest.mark.usefixtures("forked_agents")
def test_short_trials_share_turns_and_keep_the_order_of_the_tuner(tmp_path: Path) -> None:
    local: Any = {"trial_concurrency": 2, "training_service": {"platform": "local"}}
    given = config(search_space=SPACE, max_trial_number=NUMBER, **local)
    manager = create_experiment(given, directory=tmp_path, function=train)
    turns: list[int] = []
    manager.watch(lambda: turns.append(1))
    run(manager)
    trials = manager.runner.get_trials()
    tuner = RandomTuner(seed=7)
    tuner.update_search_space(SPACE)
    assert [parameters_of(trial.record) for trial in trials] == tuner.generate_multiple_parameters(
        list(range(NUMBER))
    )
    assert {(trial.status, trial.attempt) for trial in trials} == {(TrialStatus.SUCCEEDED, 1)}
    assert [trial.values for trial in trials] == [(parameters_of(trial.record)["x"],) for trial in trials]
    assert len(turns) < NUMBER
