"""A short fault campaign, and tests of its crash points and checks."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent


def imported(name: str, folder: Path = HERE) -> Any:
    """Import a module of the campaign, whose folder is on its path."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for each in folder.glob("*.py"):
            sys.modules.pop(each.stem, None)


def hooks() -> Any:
    return imported("crash_points", HERE / "hooks")


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
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
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


def checked(
    tmp_path: Path,
    said: list[list[Any]],
    rows: list[tuple[str, int, int, str, float, int]],
    forgotten: tuple[str, ...] = (),
    status: str = "SUCCEEDED",
) -> Any:
    """Check one trial with x = 1.0 and two steps: what it noted against what the database holds."""
    check = imported("check")
    record = json.dumps({"parameters": {"x": 1.0}})
    with closing(sqlite3.connect(tmp_path / "experiment.db")) as db, db:
        db.execute("CREATE TABLE trials (sequence_id, status, record, reason)")
        db.execute("CREATE TABLE metrics (sequence_id, kind, sequence, attempt, value, superseded)")
        db.execute("CREATE TABLE commands (code, payload)")
        db.execute("INSERT INTO trials VALUES (0, ?, ?, '')", (status, record))
        for *place, token, value, superseded in rows:
            text = json.dumps({"default": value, "token": token})
            db.execute("INSERT INTO metrics VALUES (0, ?, ?, ?, ?, ?)", (*place, text, superseded))
    (tmp_path / "0").write_text("".join(json.dumps(line) + "\n" for line in said))
    return check.check_experiment(tmp_path, tmp_path, [1.0], 2, forgotten)


SAID = [["a", "begin", 0], ["a", "report", 0, 1.0], ["a", "report", 1, 3.0], ["a", "final", 2, 1.0]]
ROWS = [
    ("PERIODICAL", 0, 1, "a", 1.0, 0),
    ("PERIODICAL", 1, 1, "a", 3.0, 0),
    ("FINAL", 0, 1, "a", 1.0, 0),
]


def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path) -> None:
    found = checked(tmp_path, SAID, ROWS)
    assert (found.problems, found.acknowledged) == ([], 3)


def test_trial_that_has_failed_is_found(tmp_path: Path) -> None:
    assert checked(tmp_path, SAID, ROWS, status="FAILED").differing == 1


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


def test_run_that_the_database_may_have_forgotten_is_not_missed(tmp_path: Path) -> None:
    others = [["b", "begin", 0], ["b", "report", 0, 1.0], ["b", "final", 2, 1.0]]
    assert checked(tmp_path, [*others, *SAID], ROWS, ("b",)).problems == []


def test_process_dies_within_a_function_and_once(tmp_path: Path) -> None:
    (tmp_path / "hits").mkdir()
    (tmp_path / "exp").mkdir()
    script = "import sys, pathlib; from pitchpipe.store.store import Store, ExperimentRow\n"
    script += "row = ExperimentRow(id='e', name=None, status='DONE', config={}, token='', created=1.0)\n"
    script += "Store.create(pathlib.Path(sys.argv[1]), row, ['default']).close()\n"
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE / "hooks"),
        "PPFAULTS_CRASH": "manager:making-store:1",
        "PPFAULTS_HITS": str(tmp_path / "hits"),
    }

    def code_of_making(name: str) -> int:
        command = [sys.executable, "-P", "-c", script, str(tmp_path / "exp" / name)]
        return subprocess.run(command, env=environment, check=False).returncode

    assert code_of_making("first.db") in (-signal.SIGALRM, -signal.SIGKILL)
    assert code_of_making("second.db") == 0
    assert os.listdir(tmp_path / "hits") == ["manager:making-store"]


@pytest.mark.parametrize("missing", ["", "manager:closing-store", "database:put-back"])
def test_campaign_fails_if_a_point_was_never_hit(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    campaign = imported("campaign")
    reached = {name: 1 for name in (*campaign.POINTS, *campaign.DEEDS) if name != missing}
    tried = []

    def run(plan: Any, keep: Path) -> Any:
        tried.append(plan.favoured)
        return campaign.Outcome(plan, hits=Counter(reached))

    monkeypatch.setattr(campaign, "run_experiment", run)
    words = ["--simulated", "0", "--keep", str(tmp_path)]
    assert campaign.main([*words, "--minutes", "0"]) == (1 if missing else 0)
    assert (f"never hit: {missing}" in capsys.readouterr().out.splitlines()) == bool(missing)
    assert missing == "" or tried.count(missing) > 3
    assert campaign.main([*words, "--experiments", "1"]) == 0  # a slice


def test_small_disk_is_full_and_has_room_again(tmp_path: Path) -> None:
    laboratory = imported("laboratory")
    disk = laboratory.SmallDisk(tmp_path / "disk")
    disk.place.mkdir()
    if not disk.mount():
        pytest.skip("disk:full needs root: no other user may mount a disk")
    try:
        disk.fill()
        with pytest.raises(OSError, match="No space left on device"):
            (disk.place / "file").write_bytes(b"0" * 4096)
        disk.free()
        (disk.place / "file").write_bytes(b"0" * 4096)
    finally:
        disk.end(keep=True)
    assert (disk.place / "file").stat().st_size == 4096
    assert not os.path.ismount(disk.place)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_slice_of_the_campaign_loses_nothing(tmp_path: Path) -> None:
    """Run one experiment of commands and one of functions, five lives each; `make faults` runs many."""
    line = [sys.executable, "-P", str(HERE / "campaign.py"), "--experiments", "2", "--simulated", "1"]
    line += ["--seed", "1", "--keep", str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    died = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| manager:")]
    assert sum(int(times) for _, _, times, _ in died) > 0
