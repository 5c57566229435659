"""Stores the searches, one JSON line each, and runs those that are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Plan", "Results"]

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Plan:
    """What to run: every optimiser on every task with every seed."""

    optimisers: Sequence[str]
    tasks: Sequence[str]
    seeds: Sequence[int]
    budget: int
    workers: int = 1


class Results:
    """Searches in a folder, a file for each optimiser; what was run is not run again."""

    def __init__(self, folder: Path, peers: Path | None = None) -> None:
        self._folder = folder
        self._peers = peers
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, plan: Plan) -> None:
        """Run what is missing, one process at a time; an optimiser that fails on a task is reported and skipped."""
        for optimiser in plan.optimisers:
            for task in plan.tasks:
                known = {
                    row["seed"]
                    for row in self.of(optimiser, plan.budget, plan.workers)
                    if row["task"] == task
                }
                missing = [seed for seed in plan.seeds if seed not in known]
                if missing:
                    self._run(optimiser, task, missing, plan)

    def of(self, optimiser: str, budget: int, workers: int) -> Iterator[dict[str, Any]]:
        """Yield the searches of an optimiser, with at least this budget."""
        path = self._path(optimiser)
        if path.exists():
            for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                if row["budget"] >= budget and row["workers"] == workers:
                    yield row

    def _path(self, optimiser: str) -> Path:
        return self._folder / f"{''.join(c if c.isalnum() else '-' for c in optimiser)}.jsonl"

    def _run(self, optimiser: str, task: str, seeds: Sequence[int], plan: Plan) -> None:
        python = self._python(optimiser)
        if python is None:
            return
        request = {"optimiser": optimiser, "task": task, "seeds": list(seeds)}
        request |= {"budget": plan.budget, "workers": plan.workers}
        print(f"{optimiser} on {task}: seeds {seeds[0]}..{seeds[-1]}", file=sys.stderr, flush=True)
        with self._path(optimiser).open("a", encoding="utf-8") as file:
            done = subprocess.run(
                [python, str(_HERE / "worker.py"), json.dumps(request)],
                stdout=file,
                stderr=subprocess.PIPE,
                # Suggestions are small sums: threads that wait for each other would be counted as work.
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "OPENBLAS_NUM_THREADS": "1",
                    "PYTHONHASHSEED": "0",
                },
                text=True,
                check=False,
            )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            print(f"  {optimiser} failed on {task}: {last}", file=sys.stderr)

    def _python(self, optimiser: str) -> str | None:
        """Return the interpreter that has the optimiser's package, None if there is none."""
        if not optimiser.startswith(("optuna-", "nni-")):
            return sys.executable
        python = None if self._peers is None else self._peers / "bin" / "python"
        return str(python) if python is not None and python.exists() else None
