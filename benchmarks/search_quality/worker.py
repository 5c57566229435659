"""Runs searches in the environment of one package: `worker.py '{"optimiser": ..., "task": ..., "seeds": [...]}'`.

One JSON line a search on stdout; what a package prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import tasks
from fidelity import make_method, run_epochs
from optimisers import make
from searching import search


def run(request: dict[str, Any], seed: int) -> dict[str, Any]:
    """Run one search; `ms` is the CPU time of each trial, where trials are counted."""
    if request["task"] in tasks.curve_tasks():
        curves = tasks.curve_tasks()[request["task"]]()
        method = make_method(request["optimiser"], curves, seed)
        return {"truths": run_epochs(curves, method, request["budget"], seed), "ms": []}
    task = tasks.make(request["task"])
    optimiser = make(request["optimiser"], task.space, seed, task.objectives)
    found = search(task, optimiser, request["budget"], seed, request["workers"])
    return {"truths": found.truths, "ms": [round(1e3 * seconds, 3) for seconds in found.seconds]}


def main() -> None:
    """Run the request's searches."""
    request = json.loads(sys.argv[1])
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for seed in request["seeds"]:
        began = time.process_time()
        row = {key: request[key] for key in ("optimiser", "task", "budget", "workers")} | {"seed": seed}
        row |= run(request, seed) | {"cpu": round(time.process_time() - began, 2)}
        print(json.dumps(row), file=answer, flush=True)


main()
