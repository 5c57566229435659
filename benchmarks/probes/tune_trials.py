"""What the probes of Ray Tune share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray import tune

__all__ = ["fit"]


def fit(
    trial: Callable[[dict[str, Any]], None],
    number: int,
    scheduler: Any = None,
    callbacks: list[tune.Callback] | None = None,
) -> tune.ResultGrid:
    """Run `number` trials, two at once, on a Ray of this machine, with reused actors."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    space = {"x": tune.uniform(0, 1), "lr": tune.loguniform(1e-5, 1), "layers": tune.randint(1, 9)}
    tuner = tune.Tuner(
        trial,
        param_space=space,
        tune_config=tune.TuneConfig(
            num_samples=number,
            reuse_actors=True,
            max_concurrent_trials=2,
            metric="loss",
            mode="min",
            scheduler=scheduler,
        ),
        run_config=tune.RunConfig(storage_path=str(Path.cwd() / "tune"), verbose=0, callbacks=callbacks),
    )
    return tuner.fit()
