"""A short fault campaign, and tests of its crash points and checks."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent


def hooks() -> Any:
    spec = importlib.util.spec_from_file_location("faults_hooks", HERE / "hooks" / "crash_points.py")
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


def test_crash_points_are_found_where_python_has_a_sitecustomize_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("LOADED_FIRST = True\n")
    script = f"import sys; sys.path.insert(0, {str(HERE)!r}); import sitecustomize, plan\n"
    script += "print(sitecustomize.LOADED_FIRST, *plan.POINTS)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", *hooks().POINTS]


@pytest.mark.parametrize(
    ("environment", "line", "role"),
    [
        ({"PITCHPIPE_REPORTS": "x"}, ["python", "train.py"], "trial"),
        ({}, ["python", "-P", "-m", "pitchpipe.trial_agent", "--agent", "0-0"], "agent"),
        ({}, ["python", "-P", "-m", "pitchpipe.dispatcher"], "dispatcher"),
        ({}, ["python", "-P", "-m", "pitchpipe", "resume"], "manager"),
    ],
)
def test_processes_are_distinguished(environment: dict[str, str], line: list[str], role: str) -> None:
    assert hooks().role(environment, line) == role


def checked(tmp_path: Path, said: list[list[Any]], rows: list[tuple[str, int, int, str, float, int]]) -> Any:
    """Check one trial with x = 1.0 and two steps: what it noted against what the database holds."""
    sys.path.insert(0, str(HERE))
    try:
        check = importlib.import_module("check")
    finally:
        sys.path.remove(str(HERE))
        sys.modules.pop("check", None)
    db = sqlite3.connect(tmp_path / "experiment.db")
    db.execute("CREATE TABLE trials (sequence_id, status, record, reason)")
    db.execute("CREATE TABLE metrics (sequence_id, kind, sequence, attempt, value, superseded)")
    db.execute("CREATE TABLE commands (code, payload)")
    db.execute("INSERT INTO trials VALUES (0, 'SUCCEEDED', ?, '')", (json.dumps({"parameters": {"x": 1.0}}),))
    for kind, sequence, attempt, token, value, superseded in rows:
        text = json.dumps({"default": value, "token": token})
        db.execute(
            "INSERT INTO metrics VALUES (0, ?, ?, ?, ?, ?)", (kind, sequence, attempt, text, superseded)
        )
    db.commit()
    db.close()
    (tmp_path / "0").write_text("".join(json.dumps(line) + "\n" for line in said))
    return check.check_experiment(tmp_path, tmp_path, [1.0], 2)


SAID = [["a", "begin", 0], ["a", "report", 0, 1.0], ["a", "report", 1, 3.0], ["a", "final", 2, 1.0]]
ROWS = [
    ("PERIODICAL", 0, 1, "a", 1.0, 0),
    ("PERIODICAL", 1, 1, "a", 3.0, 0),
    ("FINAL", 0, 1, "a", 1.0, 0),
]


def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    found = checked(tmp_path, SAID, ROWS)
    assert (found.problems, found.acknowledged) == ([], 3)


@pytest.mark.parametrize(
    ("what", "said", "rows"),
    [
        ("lost", SAID, [ROWS[0], ROWS[2]]),
        ("lost", SAID, ROWS[:2]),
        ("doubled", SAID, [*ROWS, ROWS[0]]),
        ("doubled", SAID, [*ROWS, ("PERIODICAL", 0, 2, "b", 1.0, 0)]),
        ("differing", SAID, [*ROWS[:2], ("FINAL", 0, 1, "a", 2.0, 0)]),
        ("repeated", [*SAID, ["b", "final", 2, 1.0]], [*ROWS, ("FINAL", 0, 2, "b", 1.0, 1)]),
    ],
)
def test_what_is_wrong_is_found(what: str, said: Any, rows: Any, tmp_path: Path) -> None:
    assert getattr(checked(tmp_path, said, rows), what) > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_slice_of_the_campaign_loses_nothing(tmp_path: Path) -> None:
    """Run a few experiments; `make faults` runs many."""
    line = [sys.executable, "-P", str(HERE / "campaign.py"), "--experiments", "8", "--simulated", "2"]
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
