"""What runs in a job of Slurm, outside of one; `test_slurm_job` runs it in a real job."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pitchpipe.executors.clusters import allocation
from pitchpipe.executors.clusters.node import NodeError


def test_outside_of_a_job_it_says_how_to_get_into_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert allocation.main("e.yml", "e", str(tmp_path)) == 1
    assert capsys.readouterr().err == "error: this runs in a job of Slurm only: pitchpipe slurm submit\n"


@pytest.mark.parametrize("exists", [False, True])
def test_experiment_is_run_at_first_and_then_resumed(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(allocation, "run_in_allocation", lambda command, directory: seen.append(command) or 0)
    if exists:
        (tmp_path / "e").mkdir()
    assert allocation.main("e.yml", "e", str(tmp_path)) == 0
    words = ["resume", "e"] if exists else ["run", "e.yml", "--experiment-id", "e"]
    assert seen[0][4:] == [*words, "--dir", str(tmp_path)]


def test_ray_that_does_not_start_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise NodeError("Ray does not start: no room")

    monkeypatch.setenv("SLURM_JOB_ID", "no-such-job")
    monkeypatch.setattr(allocation, "start_node", fail)
    with pytest.raises(NodeError, match="no room"):
        allocation.run_in_allocation(["true"], directory=tmp_path)


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETING"])
def test_job_is_requeued_unless_slurm_already_ends_it(
    state: str, programs: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = programs(scontrol=f"echo JobId=7 JobState={state} Restarts=0")
    monkeypatch.setenv("SLURM_JOB_ID", "no-such-job")
    monkeypatch.setattr(allocation, "start_node", lambda *_, **__: "127.0.0.1:1")
    signals_us = f"import os, signal; os.kill({os.getpid()}, 15); signal.pause()"
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert allocation.run_in_allocation([sys.executable, "-c", signals_us], directory=tmp_path) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    asked = ["scontrol show job --oneliner no-such-job", "scontrol requeue no-such-job"]
    assert calls.read_text().splitlines() == asked[: 2 if state == "RUNNING" else 1]
