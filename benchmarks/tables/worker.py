"""Runs searches in the environment of an optimiser; the tasks are evaluated in theirs: `worker.py REQUEST`.

One JSON line a search on stdout; what a library prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from adapters import make
from environments import clean

__all__ = ["Tasks", "search"]

_SERVER = Path(__file__).parent / "tasks" / "server.py"


class Tasks:
    """The tasks of a table, behind a pipe."""

    def __init__(self, python: str, table: str) -> None:
        self._process = subprocess.Popen(
            [python, str(_SERVER), table],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=clean(),
        )

    def __enter__(self) -> Tasks:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, request: Any) -> Any:
        """Return the reply to a request; see `tasks/server.py`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the tasks ended with {self._process.wait()} at {request!r}")
        return json.loads(line)


def search(tasks: Tasks, request: dict[str, Any], seed: int) -> dict[str, Any]:
    """Run one search; `seconds` is the CPU time of the optimiser for each suggestion, in total."""
    opened = tasks.ask({"open": request["task"], "seed": seed})
    optimiser = make(request["optimiser"], opened["space"], opened["objectives"], seed)
    values: list[list[float]] = []
    total = request["budget"] * (opened["facts"]["dimension"] if request["per_dimension"] else 1)
    seconds = 0.0
    while len(values) < total:
        began = time.process_time()
        suggested = optimiser.suggest(min(request["batch"], total - len(values)))
        seconds += time.process_time() - began
        if not suggested:
            break
        found = tasks.ask({"evaluate": suggested})
        began = time.process_time()
        optimiser.observe(found)
        seconds += time.process_time() - began
        values += found
    return {"facts": opened["facts"], "values": values, "seconds": seconds}


def main() -> None:
    """Run the searches of the request, one for each seed."""
    request = json.loads(sys.argv[1])
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kept = {key: request[key] for key in ("task", "optimiser", "budget", "version")}
    with Tasks(request["python"], request["table"]) as tasks:
        for seed in request["seeds"]:
            print(json.dumps(kept | {"seed": seed} | search(tasks, request, seed)), file=answer, flush=True)


if __name__ == "__main__":
    main()
