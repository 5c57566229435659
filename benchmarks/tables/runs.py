"""Keeps the searches of a table, one JSON line each, and runs those that are missing.

A line counts as long as its optimiser is what it was: another version of a package or of our tuners is run again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any

from adapters import environment_of
from definitions import Table
from environments import Environments, EnvironmentUnavailable, clean
from versions import version_of

__all__ = ["Plan", "Runs"]

_WORKER = Path(__file__).parent / "worker.py"
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run: every optimiser on every task with every seed."""

    tasks: Sequence[str]
    optimisers: Sequence[str]
    seeds: Sequence[int]
    budget: int
    processes: int


@dataclass(frozen=True)
class Runs:
    """The searches of one table: those in `kept`, a file of the repository, and those in `path`, run since then."""

    name: str
    table: Table
    kept: Path
    path: Path
    environments: Environments
    _lock: Lock = field(default_factory=Lock)

    def all(self) -> list[Row]:
        """Return every search with the optimisers as they are now; two commands may have run one of them twice."""
        current = {_key(row): row for row in self._lines() if row["version"] == version_of(row["optimiser"])}
        return list(current.values())

    def outdated(self) -> Counter[str]:
        """Return how many searches of each optimiser are left out, since it was another one then."""
        missing = {_key(row) for row in self._lines()} - {_key(row) for row in self.all()}
        return Counter(optimiser for _, optimiser, *_ in sorted(missing))

    def keep(self) -> int:
        """Move what was run into the file of the repository, without outdated searches; return how many it has."""
        rows = sorted(self.all(), key=_key)
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        written = self.kept.with_suffix(".new")
        written.write_text("".join(map(_line, rows)), encoding="utf-8")
        written.replace(self.kept)
        self.path.unlink(missing_ok=True)
        return len(rows)

    def _lines(self) -> Iterator[Row]:
        """Yield what the files have; a line that was cut off when the machine stopped is left out."""
        for path in filter(Path.exists, (self.kept, self.path)):
            for line in filter(None, path.read_text(encoding="utf-8").splitlines()):
                try:
                    yield _read(line)
                except json.JSONDecodeError:
                    print(f"{path}: a damaged line is left out", file=sys.stderr)

    def of(self, plan: Plan) -> list[Row]:
        """Return the searches of a plan."""
        return [
            row
            for row in self.all()
            if row["task"] in plan.tasks
            and row["optimiser"] in plan.optimisers
            and row["seed"] in plan.seeds
            and row["budget"] == plan.budget
        ]

    def run(self, plan: Plan) -> None:
        """Run what is missing; an optimiser that fails on a task is reported, and the others continue."""
        known = {(row["task"], row["optimiser"], row["seed"]) for row in self.of(plan)}
        missing = [
            (task, optimiser, seeds)
            for task in plan.tasks  # outermost, so that an interrupted run is about the same tasks for all
            for optimiser in plan.optimisers
            if (seeds := [seed for seed in plan.seeds if (task, optimiser, seed) not in known])
        ]
        pythons = {name: self._python(name) for name in {optimiser: None for _, optimiser, _ in missing}}
        jobs = [
            (python, {"task": task, "optimiser": optimiser, "seeds": seeds, "budget": plan.budget})
            for task, optimiser, seeds in missing
            if (python := pythons[optimiser])
        ]
        if not jobs:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._end_last_line()
        tasks_python = self.environments.python(self.table.environment)
        with ThreadPoolExecutor(plan.processes) as pool:
            for _ in pool.map(lambda job: self._run(job[0], job[1], tasks_python), jobs):
                pass

    def _end_last_line(self) -> None:
        """End a line that was cut off, so that the next search has its own."""
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n"):
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def _python(self, optimiser: str) -> str | None:
        """Return the interpreter of an optimiser; one that cannot be installed is left out."""
        try:
            return self.environments.python(environment_of(optimiser))
        except EnvironmentUnavailable as error:
            print(f"{optimiser} is left out: {error}", file=sys.stderr, flush=True)
            return None

    def _run(self, python: str, request: Row, tasks_python: str) -> None:
        request |= {"table": self.name, "python": tasks_python, "batch": self.table.batch}
        request |= {"per_dimension": self.table.per_dimension, "version": version_of(request["optimiser"])}
        print(f"{request['optimiser']} on {request['task']}", file=sys.stderr, flush=True)
        command = [python, str(_WORKER), json.dumps(request)]
        with (
            TemporaryFile("w+", encoding="utf-8") as said,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=clean()) as worker,
        ):
            assert worker.stdout is not None
            for line in worker.stdout:
                row = json.loads(line)
                row["values"] = [_rounded(values, self.table.digits) for values in row["values"]]
                with self._lock, self.path.open("a", encoding="utf-8") as file:
                    file.write(_line(row))
            if worker.wait():
                said.seek(0)
                last = (said.read().strip().splitlines() or ["no message"])[-1]
                print(f"  {request['optimiser']} failed on {request['task']}: {last}", file=sys.stderr)


def _key(row: Row) -> tuple[str, str, int, int]:
    return row["task"], row["optimiser"], row["seed"], row["budget"]


def _rounded(values: list[float], digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]


def _line(row: Row) -> str:
    """Write a search as a line; the value of a single objective stands without brackets."""
    values = row["values"]
    if all(len(one) == 1 for one in values):
        values = [value for [value] in values]
    seconds = float(f"{row['seconds']:.4g}")
    return json.dumps(row | {"values": values, "seconds": seconds}, separators=(",", ":")) + "\n"


def _read(line: str) -> Row:
    row = json.loads(line)
    return row | {"values": [one if isinstance(one, list) else [one] for one in row["values"]]}
