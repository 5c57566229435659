"""What a private Ray has at most: what Ray finds on this machine, or what one that runs was started with."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from pitchpipe.executors.private_ray.head import limits_of_this_machine, most_of_this_machine
from pitchpipe.executors.private_ray.supervisor_files import SupervisorFiles, SupervisorState
from pitchpipe.runner import Request


@pytest.fixture(autouse=True)
def four_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Ray find four GPUs, of which one is visible."""
    vendor = SimpleNamespace(
        get_current_node_num_accelerators=lambda: 4, get_current_process_visible_accelerator_ids=lambda: ["1"]
    )
    monkeypatch.setattr(
        "ray._private.accelerators.get_accelerator_manager_for_resource", {"GPU": vendor}.__getitem__
    )


def test_ray_is_asked_for_gpus_only_if_trials_take_some() -> None:
    assert most_of_this_machine(Request(gpus=1)).anonymous_gpus == 1
    assert most_of_this_machine(Request()).anonymous_gpus == 0


def test_ray_that_runs_has_what_it_was_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SupervisorState(
        pid=1, created=0.0, temp_dir="/tmp/ray", resources={"CPU": 64, "GPU": 2, "widget": 3}
    )
    monkeypatch.setattr(SupervisorFiles, "read_state", lambda files: state)
    totals = most_of_this_machine(Request(cpus=64, gpus=2))
    assert (totals.amounts["CPU"], totals.amounts["widget"], totals.anonymous_gpus) == (64, 3, 2)


@pytest.mark.parametrize(("usable", "memory"), [(2**62, {}), (2**20, {"memory": 2**19})])
def test_ray_is_told_of_limits_that_it_does_not_know(
    usable: int, memory: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "pitchpipe.executors.private_ray.head"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {5}, raising=False)
    monkeypatch.setattr(f"{module}.usable_bytes", lambda: usable)
    monkeypatch.setattr(f"{module}.available_bytes", lambda: 2**19)
    assert limits_of_this_machine() == {"CPU": 1, **memory}
    assert most_of_this_machine(Request()).amounts == {"CPU": 1, "memory": usable, **memory}
