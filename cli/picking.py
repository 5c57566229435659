"""The trial a verb means: `[ID] TRIAL`, where TRIAL is a trial's id or its sequence number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..runner import Trial
from ..store import ExperimentFolder, Store
from .failures import USAGE, Failure
from .finding import chosen_experiment

__all__ = ["chosen_trial", "split_names"]


def split_names(
    names: Sequence[str], experiment_id: str | None, directory: Path | None
) -> tuple[ExperimentFolder, str]:
    """Return the experiment's folder and the word for the trial."""
    if len(names) > 2:
        raise Failure(f"give [ID] TRIAL, not {len(names)} words: {' '.join(names)}", USAGE)
    return chosen_experiment(names[0] if len(names) == 2 else None, experiment_id, directory), names[-1]


def chosen_trial(store: Store, word: str) -> Trial:
    """Return the trial that a word means: a sequence number, else an id or its unique beginning."""
    trials = list(store.trials())
    if word.isdecimal():
        found = [trial for trial in trials if trial.sequence_id == int(word)]
    else:
        found = [trial for trial in trials if trial.trial_id == word]
        found = found or [trial for trial in trials if trial.trial_id.startswith(word)]
    if len(found) == 1:
        return found[0]
    experiment = store.experiment().id
    if found:
        ids = ", ".join(trial.trial_id for trial in found[:10])
        raise Failure(f"'{word}' may be any of {ids} in experiment {experiment}", USAGE)
    known = f"it has trials 0 to {len(trials) - 1}" if trials else "it has no trials yet"
    raise Failure(f"there is no trial '{word}' in experiment {experiment}: {known}", USAGE)
