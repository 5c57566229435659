"""Keeps the searches of a table, one JSON line each, and runs those that are missing."""

from __future__ import annotations

import json
import subprocess
import sys
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
    """The searches of one table; the file has a line for each that ended."""

    name: str
    table: Table
    path: Path
    environments: Environments
    _lock: Lock = field(default_factory=Lock)

    def all(self) -> Iterator[Row]:
        """Yield every search; a line that was cut off when the machine stopped is left out."""
        if self.path.exists():
            for line in filter(None, self.path.read_text(encoding="utf-8").splitlines()):
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    print(f"{self.path}: a damaged line is left out", file=sys.stderr)

    def of(self, plan: Plan) -> list[Row]:
        """Return the searches of a plan; two commands at the same time may have run one of them twice."""
        found = {
            (row["task"], row["optimiser"], row["seed"]): row
            for row in self.all()
            if row["task"] in plan.tasks
            and row["optimiser"] in plan.optimisers
            and row["seed"] in plan.seeds
            and row["budget"] == plan.budget
        }
        return list(found.values())

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
        request |= {"per_dimension": self.table.per_dimension}
        print(f"{request['optimiser']} on {request['task']}", file=sys.stderr, flush=True)
        command = [python, str(_WORKER), json.dumps(request)]
        with (
            TemporaryFile("w+", encoding="utf-8") as said,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=clean()) as worker,
        ):
            assert worker.stdout is not None
            for line in worker.stdout:
                with self._lock, self.path.open("a", encoding="utf-8") as file:
                    file.write(line)
            if worker.wait():
                said.seek(0)
                last = (said.read().strip().splitlines() or ["no message"])[-1]
                print(f"  {request['optimiser']} failed on {request['task']}: {last}", file=sys.stderr)
