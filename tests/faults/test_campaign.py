"""A slice of the fault campaign, and that its crash points are where the table says."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent


def hooks() -> Any:
    spec = importlib.util.spec_from_file_location("faults_hooks", HERE / "hooks" / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_crash_point_names_a_function() -> None:
    for name, point in hooks().POINTS.items():
        found: Any = importlib.import_module(point.module)
        for part in point.function.split("."):
            assert hasattr(found, part), name
            found = getattr(found, part)
        assert callable(found), name


@pytest.mark.parametrize(
    ("environment", "line", "role"),
    [
        ({"PITCHPIPE_REPORTS": "x"}, ["python", "train.py"], "trial"),
        ({}, ["python", "-P", "-m", "pitchpipe.trial_agent", "--agent", "0-0"], "agent"),
        ({}, ["python", "-P", "-m", "pitchpipe.dispatcher"], "dispatcher"),
        ({}, ["python", "-P", "-m", "pitchpipe", "resume"], "manager"),
    ],
)
def test_processes_are_told_apart(environment: dict[str, str], line: list[str], role: str) -> None:
    assert hooks().role(environment, line) == role


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_slice_of_the_campaign_loses_nothing(tmp_path: Path) -> None:
    """About a minute; `make faults` goes on for longer."""
    line = [sys.executable, "-P", str(HERE / "campaign.py"), "--minutes", "0.8", "--simulated", "2"]
    done = subprocess.run(
        [*line, "--seed", "1", "--keep", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    died = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| manager:")]
    assert sum(int(times) for _, _, times, _ in died) > 0
