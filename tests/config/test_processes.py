"""Trials of several processes: what may be written, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig
from pitchpipe.manager.settings import request_of, run_of
from pitchpipe.store import ExperimentFolder

CLUSTER = {"platform": "ray", "address": "10.0.0.1:6379"}


def made(needs_command: bool = True, **fields: Any) -> ExperimentConfig:
    command = {"trial_command": "true"} if needs_command else {}
    data = {"search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}, **command, **fields}
    return ExperimentConfig.from_dict(data, needs_command=needs_command)


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


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"processes": 0}, "resources.processes: must be greater than 0, not 0"),
        ({"nodes": 2}, "resources.processes: required field is missing"),
        (
            {"processes": 2, "gpus_per_process": 0.5},
            "resources.gpus_per_process: must be an integer, not 0.5",
        ),
        (
            {"processes": 3, "nodes": 2, "training_service": CLUSTER},
            "resources.processes: is 3, which 2 nodes cannot share equally (a multiple of 2)",
        ),
        (
            {"processes": 2, "nodes": 2, "training_service": {"platform": "local"}},
            "resources.nodes: is 2, and the platform local has one node"
            " (join a cluster: platform: ray, and its address)",
        ),
        (
            {"processes": 2, "nodes": 2},
            "resources.nodes: is 2, and a private Ray has one node"
            " (set training_service.address: `pitchpipe cluster up` prints one)",
        ),
        (
            {"processes": 2, "trial_gpu_number": 1},
            "resources: excludes trial_gpu_number (use resources.gpus_per_process)",
        ),
        (
            {"processes": 2, "needs_command": False},
            "resources: needs a trial_command: a function trial is one process (call the function in a script)",
        ),
    ],
)
def test_bad_resources_are_named(fields: dict[str, Any], problem: str) -> None:
    asked = {name: fields.pop(name) for name in ("processes", "nodes", "gpus_per_process") if name in fields}
    with pytest.raises(ConfigError) as error:
        made(resources=asked, **fields)
    assert [str(one) for one in error.value.problems] == [problem]
