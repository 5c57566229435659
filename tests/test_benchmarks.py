"""The budget table: its probes run, and peers are found in the folder that `make peers` fills."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .benchmark_modules import benchmark_modules

# `functions`, `start` and `profile-ray` start a Ray; the others run below.
NOT_HERE = {"functions", "start", "profile-ray", "imports", "tpe"}


@pytest.fixture
def folder(tree: Path, tmp_path: Path) -> Path:
    """Copy what `make bench` needs; the peers in .peers are those of the test environment."""
    shutil.copytree(tree / "benchmarks", tmp_path / "benchmarks")
    python = tmp_path / ".peers" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    return tmp_path


def bench(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    """Run the benchmarks in a folder; return what they printed and the rows of the table."""
    command = [sys.executable, "benchmarks/run.py", "--quick", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done, json.loads((folder / "build" / "benchmarks.json").read_text())["rows"]


def test_peers_are_found_by_a_relative_path(folder: Path) -> None:
    done, rows = bench(folder, "--peers", ".peers", "tpe")
    assert "failed" not in done.stderr
    assert rows[0]["peers"]["Optuna TPE"]["median"] is not None
    assert rows[0]["ours"] is not None


def test_peers_that_are_not_there_are_skipped(folder: Path) -> None:
    done, rows = bench(folder, "--peers", "nowhere", "imports")
    assert "no peers: " in done.stderr
    assert "Optuna: skipped, optuna is not installed" in done.stderr
    assert rows[0]["ours"] is not None  # a difference of two times: below 0 on a busy machine


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_probe_of_ours_runs_with_its_options(tree: Path) -> None:
    with benchmark_modules(tree / "benchmarks") as module:
        bench, groups = module("measuring").Bench(None, repetitions=1, quick=True), module("groups").GROUPS
    for group in groups:
        if group.name in NOT_HERE:
            continue
        ours = [probe for probe in group.probes if probe.is_ours]
        with_options = {probe.script for probe in ours if probe.options}
        chosen = [probe for probe in ours if probe.options or probe.script not in with_options]
        outcomes = bench.measure(chosen)
        assert [outcome.errors for outcome in outcomes.values() if outcome.errors] == []
        measured = [row for row in group.rows if row.ours in outcomes]
        assert [row.what for row in measured if row.measured(outcomes) is None] == []


def test_every_probe_fills_a_row_or_is_shared(tree: Path) -> None:
    with benchmark_modules(tree / "benchmarks") as module:
        measured = {probe.script for group in module("groups").GROUPS for probe in group.probes}
    sources = {path.name: path.read_text() for path in (tree / "benchmarks" / "probes").glob("*.py")}
    shared = re.findall(r"^from (\w+) import", "\n".join(sources.values()), re.MULTILINE)
    plug_in = {"counting.py"}  # loaded by its name
    assert set(sources) - measured - {f"{name}.py" for name in shared} == plug_in


def test_make_bench_passes_its_arguments_on(tree: Path) -> None:
    words = ["make", "--dry-run", "--always-make", "READY=", "bench"]
    words += ["PEERS=somewhere", "BENCH_ARGS=--quick tpe"]
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True, check=True)
    assert "benchmarks/run.py --peers somewhere --quick tpe" in done.stdout
