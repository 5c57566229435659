"""The smallest configs, and the problems of one that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig

# A file whose values are overridden.
OVERRIDDEN = """\
searchSpace:
  lr: {_type: uniform, _value: [0, 1]}
trialCommand: sh trial.sh
maxTrialNumber: 9
tuner: TPE
objectives: [{name: loss, direction: minimize}]
"""
SMALLEST: dict[str, Any] = {
    "search_space": {"lr": {"_type": "loguniform", "_value": [1e-5, 0.1]}},
    "trial_command": "python train.py",
}


LAYER = [
    {"_name": "conv", "kernel": {"_type": "choice", "_value": [3, 5]}},
    {"_name": "pool", "kernel": {"_type": "randint", "_value": [2, 9]}},
]
LAYERED = {
    **SMALLEST["search_space"],
    "units": {"_type": "randint", "_value": [1, 65]},
    "layer": {"_type": "choice", "_value": LAYER},
}
V1: dict[str, Any] = {
    "trainingServicePlatform": "local",
    "trialConcurrency": 1,
    "trial": {"command": "python train.py", "codeDir": ".", "gpuNum": 0},
    "searchSpace": {},
}


def made(**fields: Any) -> ExperimentConfig:
    """Return the smallest config with these fields."""
    return ExperimentConfig.from_dict({**SMALLEST, **fields})


def problems_of(data: Any, **options: Any) -> list[str]:
    """Return the problems of the data, as users read them."""
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig.from_dict(data, **options)
    return [str(problem) for problem in caught.value.problems]
