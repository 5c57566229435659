"""What the probes of NNI share."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from harness import SPACE, command
from nni.experiment import CustomAlgorithmConfig, Experiment

__all__ = ["judged_bad", "run"]


def run(trial: Path, number: int, assessor: CustomAlgorithmConfig | None = None) -> list[Any]:
    """Run an experiment of `number` trials, two at once, and return NNI's records of them."""
    experiment = Experiment("local")
    config = experiment.config
    config.trial_command = command(trial)
    config.trial_code_directory = str(trial.parent)
    config.search_space = SPACE
    config.tuner.name = "Random"
    config.max_trial_number = number
    config.trial_concurrency = 2
    config.experiment_working_directory = str(Path.cwd() / "nni-experiments")
    if assessor is not None:
        config.assessor = assessor
    experiment.run(_free_port(), wait_completion=True)
    jobs = experiment.list_trial_jobs()
    experiment.stop()
    return jobs


def judged_bad(folder: Path) -> CustomAlgorithmConfig:
    """Return the config of an assessor that judges every result bad."""
    return CustomAlgorithmConfig(class_name="nni_judge.BadAtOnce", code_directory=str(folder), class_args={})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
