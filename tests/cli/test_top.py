"""`pitchpipe top`: what the screen shows, and how it is left."""

import io
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.console import Console

from pitchpipe.cli.verbs.top import screen
from pitchpipe.runner.trial import FailureKind
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading.view import ExperimentView

from ..stored import results
from .conftest import Storing, make_trial


def shown(folder: ExperimentFolder, width: int = 100, height: int = 30) -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    with ExperimentView(folder) as view:
        console.print(screen(view, view.summary(), height))
    return [" ".join(line.split()) for line in console.export_text().splitlines()]


@pytest.fixture
def folder(stored: Storing) -> ExperimentFolder:
    """Two trials have succeeded, two failed alike, one runs and has reported 0.625."""
    trials = [
        make_trial(0, "SUCCEEDED", final=0.5),
        make_trial(1, "SUCCEEDED", final=0.75),
        make_trial(2, "FAILED", reason="exit code 3"),
        make_trial(3, "FAILED", reason="exit code 3"),
        make_trial(4, "RUNNING", end_time=None),
    ]
    return stored(status="RUNNING", name="digits").write("watched", trials, results(trials[4], [0.625]))


def test_screen_has_the_best_the_running_the_ended_and_the_failures(folder: ExperimentFolder) -> None:
    lines = shown(folder)
    assert lines[0].startswith("digits watched RUNNING ran for 12 s")
    assert lines[1] == "5 of 10 trials: 1 running, 2 succeeded, 2 failed"
    best, running, ended = (lines.index(title) for title in ("best (2)", "running (1)", "ended last (4)"))
    assert running < best < ended
    assert lines[best + 2].startswith("1 SUCCEEDED 0.75 10 s x=0.1")
    assert lines[running + 2].startswith("4 RUNNING 0.625 ")
    assert lines[ended + 2].startswith("3 FAILED 10 s x=0.3")
    assert "2 trials failed: exit code 3" in lines


def test_screen_names_the_region_where_most_trials_fail(stored: Storing) -> None:
    good = [make_trial(n, "SUCCEEDED", final=0.5) for n in range(8)]
    failed = [make_trial(n, "FAILED", kind=FailureKind.OOM) for n in range(8, 14)]
    lines = shown(stored(status="RUNNING").write("oom", [*good, *failed], []))
    assert any(line.startswith("most trials with x above 0.7 fail (out of memory)") for line in lines)


def test_screen_has_the_best_intermediate_result_before_a_trial_has_ended(stored: Storing) -> None:
    trial = make_trial(0, "RUNNING", start_time=100.0, end_time=None)
    folder = stored(status="RUNNING").write("young", [trial], results(trial, [0.5, 0.625]))
    folder.own()
    lines = shown(folder)
    folder.disown()
    assert "best intermediate result: 0.625 (trial 0, after 2 results)" in lines
    assert lines[0].endswith(" 60 results/min")


@pytest.mark.parametrize("height", [4, 8, 12, 24])
def test_screen_is_no_higher_than_the_terminal(stored: Storing, height: int) -> None:
    trials = [make_trial(n, "SUCCEEDED", final=float(n)) for n in range(60)]
    trials += [make_trial(n, "RUNNING", end_time=None) for n in range(60, 90)]
    folder = stored().write("many", trials)
    assert len(shown(folder, height=height)) <= height


def test_top_is_left_by_q_and_restores_the_terminal(folder: ExperimentFolder, directory: Path) -> None:
    folder.own()  # so that it counts as running
    ours, its = pty.openpty()
    before = termios.tcgetattr(its)
    environment = {**os.environ, "TERM": "xterm", "PITCHPIPE_DIR": str(directory)}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pitchpipe", "top", "watched"],
            stdin=its, stdout=its, stderr=its, env=environment,
        )  # fmt: skip
        said = b""
        while b"running (1)" not in said:
            said += os.read(ours, 65536)
        os.write(ours, b"q")
        while b"for details, see pitchpipe status" not in said:
            said += os.read(ours, 65536)
        assert process.wait(timeout=30) == 0
        assert termios.tcgetattr(its) == before
    finally:
        folder.disown()
        os.close(ours)
        os.close(its)
