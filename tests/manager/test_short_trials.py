"""Function trials that take no time: they queue in the agents, and are the same trials in the same order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.experiments import create_experiment
from pitchpipe.protocol import parameters_of
from pitchpipe.runner.trial import TrialStatus
from pitchpipe.tuners import RandomTuner

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
NUMBER = 200


def train(parameters: dict[str, Any]) -> float:
    return parameters["x"]


train.__module__ = "__main__"


def test_short_trials_share_turns_and_keep_the_order_of_the_tuner(tmp_path: Path) -> None:
    config = {
        "search_space": SPACE,
        "tuner": {"name": "Random"},
        "seed": 7,
        "max_trial_number": NUMBER,
        "trial_concurrency": 2,
        "training_service": {"platform": "local"},
    }
    turns: list[int] = []

    async def run() -> list[Any]:
        manager = create_experiment(
            ExperimentConfig.from_dict(config, needs_command=False), directory=tmp_path, function=train
        )
        manager.watch(lambda: turns.append(1))
        await manager.run()
        assert manager.runner is not None
        manager.store.close()
        manager.folder.disown()
        return manager.runner.get_trials()

    trials = asyncio.run(run())
    tuner = RandomTuner(seed=7)
    tuner.update_search_space(SPACE)
    assert [parameters_of(trial.record) for trial in trials] == tuner.generate_multiple_parameters(
        list(range(NUMBER))
    )
    assert {(trial.status, trial.attempt) for trial in trials} == {(TrialStatus.SUCCEEDED, 1)}
    assert [trial.values for trial in trials] == [(parameters_of(trial.record)["x"],) for trial in trials]
    assert len(turns) < NUMBER
