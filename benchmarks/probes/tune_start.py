"""From the start of Python to the first action of the first trial of Ray Tune."""

import time

from harness import answer, began, options
from ray import tune
from tune_trials import fit

options()


def trial(config: dict) -> None:
    tune.report({"loss": config["x"], "at": time.time()})


[result] = fit(trial, 1)
answer(seconds=result.metrics["at"] - began())
