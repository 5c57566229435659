"""The resources of this machine; which GPUs it has is in test_local_resources.py."""

from __future__ import annotations

import os

import pytest

from pitchpipe.executors.local.local_resources import Gpu
from pitchpipe.executors.local.resources import local_totals
from pitchpipe.runner.ledger import Request

GPUS = [Gpu(0, "", 0), Gpu(1, "", 1, is_active=True), Gpu(3, "", 3)]


@pytest.mark.parametrize(
    ("gpus", "options", "devices"),
    [
        (1, {}, (0, 3)),
        (1, {"use_active_gpus": True}, (0, 1, 3)),
        (1, {"use_active_gpus": True, "gpu_indices": (1, 2)}, (1,)),
        (0, {}, ()),
    ],
)
def test_devices_are_the_idle_gpus_that_the_config_lists(
    gpus: int, options: dict[str, object], devices: tuple[int, ...]
) -> None:
    assert local_totals(Request(gpus=gpus), gpus=GPUS, **options).devices == devices  # type: ignore[arg-type]


def test_cpus_and_memory_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {5}, raising=False)
    monkeypatch.setattr("pitchpipe.executors.local.resources.usable_bytes", lambda: 2**20)
    assert local_totals(Request(cpus=1)).amounts == {"CPU": 1.0, "memory": 2.0**20}
