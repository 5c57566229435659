"""Intermediate results of two Optuna trials at once: stored, then judged by the median pruner."""

import time

import optuna
from harness import answer, options
from optuna_studies import study_in, suggest

chosen = options(storage="sqlite")
TRIALS = 4


def objective(trial: optuna.Trial) -> float:
    suggest(trial)
    for step in range(chosen.size // TRIALS):
        trial.report(0.5, step)
        if trial.should_prune():
            raise SystemExit("equal results were pruned")
    return 0.5


study = study_in(chosen.storage, pruner=optuna.pruners.MedianPruner(n_startup_trials=1))
began = time.perf_counter()
study.optimize(objective, n_trials=TRIALS, n_jobs=2)
answer(results_per_second=chosen.size // TRIALS * TRIALS / (time.perf_counter() - began))
