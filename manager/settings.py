"""From the configuration to what the runner and the executors work with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..config import ExperimentConfig
from ..runner import FailureKind, Limits, Objective, Request, Retries
from ..store import ExperimentFolder

__all__ = ["agent_timeout_of", "limits_of", "objectives_of", "request_of", "retries_of", "run_of"]


def limits_of(config: ExperimentConfig) -> Limits:
    """The bounds of the experiment."""
    return Limits(
        config.trial_concurrency,
        config.max_trial_number,
        config.max_trial_duration,
        config.max_experiment_duration,
        config.max_identical_failures,
        retries_of(config.max_failures),
        config.fail_fast,
    )


def retries_of(max_failures: int | Mapping[str, int]) -> Retries:
    """How often failed attempts are run again.

    >>> retries_of({"OOM": 1}).by_kind == {FailureKind.INFRA: 3, FailureKind.OOM: 1}
    True
    >>> retries_of(2)
    Retries(in_all=2, by_kind={})
    """
    if isinstance(max_failures, int):
        return Retries(max_failures, {})
    named = {FailureKind(kind): count for kind, count in max_failures.items()}
    return Retries(None, {FailureKind.INFRA: 3, **named})


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


def agent_timeout_of(config: ExperimentConfig) -> float:
    """How long (s) an agent may be silent: one that runs functions may not come to speak for a while."""
    if config.agent_timeout is not None:
        return config.agent_timeout
    return 60.0 if config.trial_command is None else 10.0


def run_of(config: ExperimentConfig, folder: ExperimentFolder) -> dict[str, Any]:
    """What a trial is, in the terms of the trial agent."""
    common = {
        "grace": config.kill_grace,
        "memory_limit": config.trial_memory_size,
        "orphan_timeout": config.orphan_timeout,
        "environment": dict(config.trial_environment),
        "code_directory": str(config.trial_code_directory),
        "keep": _keep_of(config),
        "reuse_actors": config.reuse_actors,
    }
    if config.trial_command is None:
        return {"kind": "function", "path": str(folder.function_file), **common}
    return {"kind": "command", "command": config.trial_command, "shell": True, **common}


def _keep_of(config: ExperimentConfig) -> dict[str, Any]:
    """What is kept of a trial's checkpoints, and when a class makes one."""
    checkpoint = config.checkpoint
    return {
        "keep": checkpoint.keep,
        "rank_by": checkpoint.rank_by,
        "mode": config.objectives[0].direction,
        "frequency": checkpoint.frequency,
        "at_end": checkpoint.at_end,
    }
