"""What probes have in common: their options and their answer. Standard library only."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

__all__ = ["SPACE", "TRIALS", "answer", "began", "files_in", "options", "resident"]

TRIALS = Path(__file__).parent / "trials"
SPACE = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
    "layers": {"_type": "randint", "_value": [1, 9]},
}


def options(**defaults: Any) -> argparse.Namespace:
    """The command line: `--size N`, and an option for each default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, required=True)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def answer(**numbers: float) -> None:
    """Say what was measured."""
    Path(os.environ["BENCHMARK_ANSWER"]).write_text(json.dumps(numbers), encoding="utf-8")


def began() -> float:
    """When this process was started, in seconds since the epoch."""
    return float(os.environ["BENCHMARK_BEGAN"])


def resident() -> int:
    """Bytes of memory that this process has in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def files_in(folder: Path) -> int:
    """How many files a folder holds."""
    return sum(len(files) for _, _, files in os.walk(folder))
