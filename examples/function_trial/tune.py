"""A function as a trial: no files, no script, no YAML.

Run it with `python tune.py`. The search runs on this machine; `--platform ray` runs the same function on Ray.
"""

import argparse
import math

from pitchpipe import Experiment, report_intermediate_result

SEARCH_SPACE = {
    "learning_rate": {"_type": "loguniform", "_value": [1e-4, 1.0]},
    "decay": {"_type": "uniform", "_value": [0.0, 0.2]},
    "shape": {"_type": "choice", "_value": ["valley", "bowl"]},
}
PLATFORMS = {
    "local": {"platform": "local"},
    "ray": {"platform": "ray", "idle_timeout": "0s"},  # a private Ray leaves together with the experiment
}


def objective(parameters: dict) -> float:
    """Walk down a slope for 20 steps, report every height on the way, and return the last one."""
    steepness = {"valley": 4.0, "bowl": 1.0}[parameters["shape"]]
    position = 10.0
    for step in range(20):
        rate = parameters["learning_rate"] * math.exp(-parameters["decay"] * step)
        position -= rate * steepness * position
        report_intermediate_result(position**2)
    return position**2


def main() -> None:
    """Search, and show the best parameters."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--platform", default="local", choices=list(PLATFORMS))
    options.add_argument("--directory", help="where the experiment's folder goes")
    chosen = options.parse_args()
    experiment = Experiment(
        objective,
        SEARCH_SPACE,
        tuner={"name": "TPE"},
        objectives=[{"name": "default", "direction": "minimize"}],
        max_trial_number=chosen.trials,
        trial_concurrency=2,
        seed=0,
        training_service=PLATFORMS[chosen.platform],
        directory=chosen.directory,
    )
    result = experiment.run()
    print(f"{result.status}: {result.counts}")
    print(f"best: {result.best.value:.3g} with {result.best.parameters}")
    print(f"everything is in {result.folder}")


if __name__ == "__main__":
    main()
