"""Trials of several processes: what may be written, and what is refused."""

from __future__ import annotations

from typing import Any

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.settings import request_of, run_of
from pitchpipe.store import ExperimentFolder

from .refusals import made, problems_of

CLUSTER = {"platform": "ray", "address": "10.0.0.1:6379"}


def test_trial_takes_what_its_processes_need(tmp_path: Any) -> None:
    asked = {"processes": 4, "gpus_per_process": 1, "nodes": 2, "cpus_per_process": 3}
    config = made(resources=asked, training_service=CLUSTER, trial_memory_size="8gb")
    request = request_of(config)
    assert (request.cpus, request.gpus, request.nodes) == (12, 4, 2)
    assert (request.per_node.cpus, request.per_node.gpus, request.per_node.memory) == (6, 2, 4 * 2**30)
    run = run_of(config, ExperimentFolder(tmp_path))
    assert (run.processes, run.nodes, run.memory_limit) == (4, 2, 4 * 2**30)
    assert ExperimentConfig.from_canonical(config.canonical()) == config


def test_gpus_stay_as_they_are_unless_processes_take_some() -> None:
    assert request_of(made(resources={"processes": 2})).gpus is None
    assert request_of(made(resources={"processes": 2, "gpus_per_process": 0})).gpus == 0


def test_function_trial_is_one_process() -> None:
    (problem,) = problems_of({"search_space": {}, "resources": {"processes": 2}}, needs_command=False)
    assert problem.startswith("resources: needs a trial_command")
