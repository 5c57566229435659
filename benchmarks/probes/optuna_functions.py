"""Function trials of Optuna that do nothing but report, two at once."""

import gc
import time
from pathlib import Path

import optuna
from harness import answer, files_in, options, resident
from optuna_studies import study_in, suggest

chosen = options(storage="sqlite", reports=0)
memory: dict[int, int] = {}


def objective(trial: optuna.Trial) -> float:
    value = suggest(trial)["x"]
    for step in range(chosen.reports):
        trial.report(float(step), step)
    return value


def note_memory(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
    del study
    if trial.number in (early, chosen.size - 1):
        gc.collect()
        memory[trial.number] = resident()


early = chosen.size // 5
study = study_in(chosen.storage)
began = time.perf_counter()
study.optimize(objective, n_trials=chosen.size, n_jobs=2, callbacks=[note_memory])
took = time.perf_counter() - began
answer(
    trials_per_second=chosen.size / took,
    bytes_per_trial=(memory[chosen.size - 1] - memory[early]) / (chosen.size - 1 - early),
    files_per_trial=files_in(Path.cwd()) / chosen.size,
)
