"""Writes a finished experiment of any size without running a trial, to measure what reads experiments.

    python benchmarks/synthetic_experiment.py DIR --trials 10000 --results 100

makes DIR/synthetic with 10,000 trials of 100 intermediate results each.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from pathlib import Path

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.runner.effects import Changes, MetricRow
from pitchpipe.runner.trial import FailureKind, Trial, TrialStatus, new_trial_id
from pitchpipe.store import StoreTick
from pitchpipe.store.folder import ExperimentFolder

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
    "width": {"_type": "qloguniform", "_value": [8, 1024, 1]},
    "dropout": {"_type": "uniform", "_value": [0, 0.8]},
    "batch": {"_type": "choice", "_value": [16, 32, 64, 128]},
    "solver": {
        "_type": "choice",
        "_value": [
            {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0, 0.99]}},
            {"_name": "adam", "beta_1": {"_type": "uniform", "_value": [0.5, 0.99]}},
        ],
    },
}
BEGAN = 1_760_000_000.0
WORKERS = 32
SECONDS = 40.0
FAILURES = (
    (FailureKind.USER_ERROR, "ValueError: loss is not finite: {:.4f}"),
    (FailureKind.OOM, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {:.1f} GiB"),
    (FailureKind.IMPORT, "ModuleNotFoundError: No module named 'apex'"),
)


def make(directory: Path, trials: int, results: int, experiment_id: str = "synthetic") -> ExperimentFolder:
    """Write the experiment; return its folder."""
    data = {
        "experiment_name": "synthetic",
        "search_space": SPACE,
        "tuner": {"name": "Random"},
        "assessor": {"name": "Medianstop"},
        "objectives": [{"name": "default", "direction": "maximize"}],
        "max_trial_number": trials,
        "trial_concurrency": WORKERS,
        "trial_command": "python train.py",
        "seed": 1,
        "training_service": {"platform": "local"},
    }
    manager = create_experiment(
        ExperimentConfig.from_dict(data), directory=directory, experiment_id=experiment_id
    )
    rng = random.Random(1)
    for first in range(0, trials, 500):
        changes = Changes()
        for number in range(first, min(first + 500, trials)):
            trial = _trial(rng, number, results, changes)
            changes.trials[trial.trial_id] = trial
        end = BEGAN + SECONDS * (1 + trials // WORKERS)
        manager.store.commit(StoreTick(changes=changes, status="DONE", end_time=end, run_time=end - BEGAN))
    manager.store.close()
    manager.folder.disown()
    return manager.folder


def _trial(rng: random.Random, number: int, results: int, changes: Changes) -> Trial:
    parameters = _parameters(rng)
    record = {"parameter_id": number, "parameters": parameters, "parameter_source": "algorithm"}
    start = BEGAN + SECONDS * (number // WORKERS) + rng.random()
    trial = Trial(
        trial_id=new_trial_id("synthetic", number, ()),
        sequence_id=number,
        parameter_id=number,
        record=json.dumps(record),
        created=start - 0.1,
        attempt=1,
    )
    trial.start_time, trial.agent = start, f"local-{number % WORKERS}"
    best = 0.97 - 0.05 * abs(math.log10(parameters["lr"]) + 2.5) - 0.1 * abs(parameters["dropout"] - 0.3)
    fate = rng.random()
    reported = results if fate < 0.72 else max(1, int(results * rng.uniform(0.1, 0.6)))
    for step in range(reported):
        value = best * (1 - math.exp(-5 * (step + 1) / results)) + rng.gauss(0, 0.004)
        time = start + SECONDS * step / results
        changes.metrics.append(
            MetricRow(trial=trial, attempt=1, kind="PERIODICAL", sequence=step, value=repr(value), time=time)
        )
    trial.next_sequence = trial.next_unsent = reported
    trial.end_time = start + SECONDS * reported / results
    _end(rng, trial, fate, best)
    return trial


def _parameters(rng: random.Random) -> dict:
    sgd = {"_name": "sgd", "momentum": rng.uniform(0, 0.99)}
    return {
        "lr": 10 ** rng.uniform(-5, 0),
        "width": round(2 ** rng.uniform(3, 10)),
        "dropout": rng.uniform(0, 0.8),
        "batch": rng.choice([16, 32, 64, 128]),
        "solver": sgd if rng.random() < 0.5 else {"_name": "adam", "beta_1": rng.uniform(0.5, 0.99)},
    }


def _end(rng: random.Random, trial: Trial, fate: float, best: float) -> None:
    if fate < 0.72:
        value = best + rng.gauss(0, 0.003)
        trial.status, trial.exit_code, trial.finals = TrialStatus.SUCCEEDED, 0, 1
        trial.final, trial.values = repr(value), (value,)
    elif fate < 0.94:
        step = trial.next_sequence - 1
        trial.status = TrialStatus.EARLY_STOPPED
        trial.reason = (
            f"{best - 0.05:.4g} is below the median {best:.4g} of {50 + step} trials after {step} results"
        )
    else:
        kind, text = rng.choice(FAILURES)
        trial.status, trial.kind, trial.exit_code = TrialStatus.FAILED, kind, 1
        trial.reason = text.format(rng.random() * 10)
        trial.error = (
            f'Traceback (most recent call last):\n  File "train.py", line 88, in <module>\n{trial.reason}'
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--results", type=int, default=100, help="intermediate results of each trial")
    chosen = parser.parse_args()
    print(make(chosen.directory, chosen.trials, chosen.results).path)


if __name__ == "__main__":
    main()
