"""Evaluates the tasks of a table in the environment that has its libraries: `server.py TABLE`.

One JSON value a line on stdin and stdout; what a library prints goes to stderr.

    "list"                                     the names of all tasks
    {"open": NAME, "seed": N}                  its search space, objectives, and what its score needs (`facts`)
    {"evaluate": [PARAMETERS, ...]}            for each a list of the objectives' values, all minimised; NaN: failed
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from typing import Any

# The tables, and the module with their tasks.
MODULES = {
    "bayesmark": "bayesmark_tasks",
    "bbob": "coco_tasks",
    "bbob-mixint": "coco_tasks",
    "bbob-biobj-mixint": "coco_tasks",
    "hpo-2": "hpo_tasks",
    "hpo-3": "hpo_tasks",
    "formulas": "formulas",
}


def main() -> None:
    """Reply to requests until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    table = sys.argv[1]
    module: Any = importlib.import_module(MODULES[table])
    task: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        if request == "list":
            reply: Any = module.names(table)
        elif "open" in request:
            task = module.open_task(table, request["open"], request["seed"])
            reply = {"space": task.space, "objectives": task.objectives, "facts": task.facts}
        else:
            reply = [task.evaluate(parameters) for parameters in request["evaluate"]]
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
