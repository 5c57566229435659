"""What a run shows while it lasts, as lines."""

import io

from rich.console import Console

from pitchpipe.cli.live_table import render
from pitchpipe.telling import BestSoFar, RunProgress
from pitchpipe.telling.failed_trials import FailedTrial

HALF = RunProgress(
    experiment_id="k3x9a2bq",
    name="digits",
    status="RUNNING",
    reason="",
    elapsed=42.0,
    counts={"RUNNING": 2, "SUCCEEDED": 15, "EARLY_STOPPED": 4, "FAILED": 1},
    total=40,
    rate=0.5,
    remaining=40.0,
    best=(BestSoFar("Xy3fA", 17, 0.9722, {"lr": 0.01, "solver": {"_name": "sgd", "momentum": 0.9}}),),
    failures=(FailedTrial(sequence_id=3, reason="exit code 1", last_line="ValueError: too big"),),
)


def drawn(progress: RunProgress, width: int = 100) -> list[str]:
    screen = io.StringIO()
    Console(file=screen, width=width).print(render(progress))
    return [line.rstrip() for line in screen.getvalue().splitlines()]
