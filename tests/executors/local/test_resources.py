"""The resources of this machine."""

from __future__ import annotations

import pytest

from pitchpipe.executors.local.gpus import DEVICES_ENVIRONMENT
from pitchpipe.executors.local.resources import local_totals
from pitchpipe.runner.ledger import Request


def test_named_devices_and_gpu_indices_make_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICES_ENVIRONMENT, "0,1,3")
    assert local_totals(Request(gpus=1)).devices == (0, 1, 3)
    assert local_totals(Request(gpus=1), gpu_indices=(1, 2)).devices == (1,)
    assert local_totals(Request()).devices == ()
