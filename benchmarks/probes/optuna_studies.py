"""What the probes of Optuna share."""

from __future__ import annotations

from pathlib import Path

import optuna

__all__ = ["study_in", "suggest"]

optuna.logging.set_verbosity(optuna.logging.WARNING)


def study_in(storage: str, **options: object) -> optuna.Study:
    """Create a study that stores its trials in SQLite or in a journal, in this folder."""
    if storage == "sqlite":
        place: object = f"sqlite:///{Path.cwd()}/study.db"
    else:
        from optuna.storages.journal import JournalFileBackend

        place = optuna.storages.JournalStorage(JournalFileBackend(str(Path.cwd() / "journal.log")))
    return optuna.create_study(storage=place, sampler=optuna.samplers.RandomSampler(seed=1), **options)


def suggest(trial: optuna.Trial) -> dict[str, float]:
    """Draw a point of the search space of the other probes."""
    return {
        "x": trial.suggest_float("x", 0, 1),
        "lr": trial.suggest_float("lr", 1e-5, 1, log=True),
        "layers": trial.suggest_int("layers", 1, 8),
    }
