"""Results of stored trials, as the tests of several verbs use them."""

from pathlib import Path

NESTED = {"lr": 0.1, "solver": {"_name": "sgd", "momentum": 0.9}}

FRONT = [
    {"name": "loss", "direction": "minimize", "reference": 5.0},
    {"name": "f1", "direction": "maximize", "reference": 0.0},
    {"name": "ms", "constraint": "<= 20"},
]


def write_output(files: Path, text: str) -> None:
    """Write what a trial printed."""
    files.mkdir(parents=True)
    (files / "stdout").write_text(text)
