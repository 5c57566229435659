"""From the configuration to what the runner and the executors work with."""

from __future__ import annotations

from typing import Any

from .config import ExperimentConfig
from .folder import ExperimentFolder
from .ledger import Request
from .results import Objective
from .trial_runner import Limits

__all__ = ["limits_of", "objectives_of", "request_of", "run_of"]


def limits_of(config: ExperimentConfig) -> Limits:
    """The bounds of the experiment."""
    return Limits(
        config.trial_concurrency,
        config.max_trial_number,
        config.max_trial_duration,
        config.max_experiment_duration,
        config.max_identical_failures,
    )


def objectives_of(config: ExperimentConfig) -> tuple[Objective, ...]:
    """What is optimised."""
    return tuple(Objective(objective.name, objective.direction) for objective in config.objectives)


def request_of(config: ExperimentConfig) -> Request:
    """What one trial takes."""
    return Request(
        config.trial_cpu_number or 0.0,
        config.trial_memory_size or 0,
        config.trial_gpu_number,
        dict(config.trial_resources),
    )


def run_of(config: ExperimentConfig, folder: ExperimentFolder) -> dict[str, Any]:
    """What a trial is, in the terms of the trial agent."""
    common = {
        "grace": config.kill_grace,
        "memory_limit": config.trial_memory_size,
        "orphan_timeout": config.orphan_timeout,
        "environment": dict(config.trial_environment),
        "code_directory": str(config.trial_code_directory),
    }
    if config.trial_command is None:
        return {"kind": "function", "path": str(folder.function_file), **common}
    return {"kind": "command", "command": config.trial_command, "shell": True, **common}
