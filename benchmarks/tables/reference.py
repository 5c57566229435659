"""What the best algorithm of 2009 reaches on COCO's functions, by the reference data that cocopp brings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from definitions import TARGETS
from environments import Environments, clean

__all__ = ["reached_2009"]


def reached_2009(environments: Environments, tasks: Sequence[str], budget: int) -> float:
    """Return the share of targets, in per cent, whose expected running time is at most the evaluations of a search."""
    functions = [[int(part[1:]) for part in task.split("_")] for task in tasks]
    request = json.dumps({"functions": functions, "budget": budget, "targets": TARGETS})
    command = [environments.python("cocopp"), str(Path(__file__).parent / "tasks" / "best_2009.py"), request]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean())
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise RuntimeError("cocopp cannot read its reference data")
    return json.loads(done.stdout.splitlines()[-1])
