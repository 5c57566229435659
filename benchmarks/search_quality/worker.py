"""Runs searches in the environment of one package: `worker.py '{"optimiser": ..., "task": ..., "seeds": [...]}'`.

One JSON line a search on stdout; what a package prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time

import tasks
from optimisers import make
from searching import search

request = json.loads(sys.argv[1])
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for seed in request["seeds"]:
    task = tasks.make(request["task"])
    began = time.process_time()
    found = search(
        task, make(request["optimiser"], task.space, seed), request["budget"], seed, request["workers"]
    )
    row = {key: request[key] for key in ("optimiser", "task", "budget", "workers")}
    row |= {"seed": seed, "truths": found.truths, "ms": [round(1e3 * s, 3) for s in found.seconds]}
    print(json.dumps(row | {"cpu": round(time.process_time() - began, 2)}), file=answer, flush=True)
