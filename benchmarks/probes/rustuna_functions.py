"""Function trials of Rustuna that do nothing but report, one at a time: two processes lock each other out of SQLite."""

import time

import rustuna
from harness import answer, options

STORAGES = {"sqlite": rustuna.storages.SQLite3Storage, "journal": rustuna.storages.JournalFileStorage}


def objective(trial: rustuna.Trial) -> float:
    trial.suggest_float("lr", 1e-5, 1, log=True)
    trial.suggest_int("layers", 1, 8)
    return trial.suggest_float("x", 0, 1)


chosen = options(storage="sqlite")
study = rustuna.create_study(
    storage=STORAGES[chosen.storage]("study"), sampler=rustuna.samplers.RandomSampler(seed=1)
)
began = time.perf_counter()
study.optimize(objective, n_trials=chosen.size)
answer(trials_per_second=chosen.size / (time.perf_counter() - began))
