"""Results of stored trials, as the tests of several verbs use them."""

from pathlib import Path
from typing import Any

NESTED = {"lr": 0.1, "solver": {"_name": "sgd", "momentum": 0.9}}

FRONT = [
    {"name": "loss", "direction": "minimize", "reference": 5.0},
    {"name": "f1", "direction": "maximize", "reference": 0.0},
    {"name": "ms", "constraint": "<= 20"},
]

RAY_RUNS: dict[str, Any] = {
    "pid": 123,
    "address": "10.0.0.1:6379",
    "since": 1.7e9,
    "temp_dir": "/tmp/pitchpipe-ray-1",
    "versions": {"ray": "2.40.0", "python": "3.11"},
    "leases": 0,
    "idle_timeout": 300.0,
    "seconds_left": 250.0,
    "agents": [],
}


def write_output(files: Path, text: str) -> None:
    """Write what a trial printed."""
    files.mkdir(parents=True)
    (files / "stdout").write_text(text)
