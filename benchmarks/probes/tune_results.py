"""Intermediate results of two Ray Tune trials at once, judged by its median stopping rule."""

import time

from harness import answer, options
from ray.tune.schedulers import MedianStoppingRule
from tune_trials import fit

chosen = options()
TRIALS = 4
steps = chosen.size // TRIALS


def trial(config: dict) -> None:
    from ray import tune

    del config
    first = time.time()
    for _ in range(steps):
        tune.report({"loss": 0.5, "first": first, "at": time.time()})


rule = MedianStoppingRule(metric=None, mode=None, grace_period=1, min_samples_required=1)
results = fit(trial, TRIALS, scheduler=rule)
reported = sum(result.metrics["training_iteration"] for result in results)
first = min(result.metrics["first"] for result in results)
last = max(result.metrics["at"] for result in results)
answer(results_per_second=reported / (last - first))
