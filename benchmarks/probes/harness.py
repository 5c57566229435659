"""What probes share: their options and how they report numbers. Standard library only."""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import sys
from pathlib import Path
from typing import Any

__all__ = [
    "SPACE",
    "TRIALS",
    "answer",
    "began",
    "command",
    "files_in",
    "options",
    "resident",
    "ten_parameters",
    "ten_parameters_value",
]

TRIALS = Path(__file__).parent / "trials"
SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
    "layers": {"_type": "randint", "_value": [1, 9]},
}


def command(script: Path) -> str:
    """Return the command line that runs a script with this Python."""
    return shlex.join([sys.executable, str(script)])


def options(**defaults: Any) -> argparse.Namespace:
    """Parse the command line: `--size N`, and an option for each default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, required=True)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def answer(**numbers: float) -> None:
    """Report what was measured."""
    Path(os.environ["BENCHMARK_ANSWER"]).write_text(json.dumps(numbers), encoding="utf-8")


def began() -> float:
    """Return when this process was started, in seconds since the epoch."""
    return float(os.environ["BENCHMARK_BEGAN"])


def resident() -> int:
    """Return the bytes of memory that this process uses."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def ten_parameters(rng: random.Random) -> dict[str, Any]:
    """Draw a point of the space in which suggestions are measured."""
    drawn: dict[str, Any] = {f"u{i}": rng.random() for i in range(4)}
    drawn |= {f"l{i}": 10 ** rng.uniform(-5, 0) for i in range(3)}
    drawn |= {f"r{i}": rng.randrange(100) for i in range(2)}
    return drawn | {"c": rng.choice("abc")}


def ten_parameters_value(point: dict[str, Any]) -> float:
    """Return the objective at a point."""
    return sum((point[f"u{i}"] - 0.3) ** 2 for i in range(4)) + point["l0"] + point["r0"] / 100


def files_in(folder: Path) -> int:
    """Return how many files a folder holds."""
    return sum(len(files) for _, _, files in os.walk(folder))
