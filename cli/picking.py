"""The trial a verb means: `[ID] TRIAL`, where TRIAL is a trial's id or its sequence number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..store import ExperimentFolder
from ..store.reading import ExperimentView, TrialQuery
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


def chosen_trial(view: ExperimentView, word: str) -> dict[str, Any]:
    """Return the trial that a word means: a sequence number, else an id or the beginning of just one."""
    found = view.matching(word)
    if len(found) == 1:
        return view.trial(found[0][0])
    if found:
        ids = ", ".join(trial_id for _, trial_id in found[:10])
        raise Failure(f"'{word}' may be any of {ids} in experiment {view.experiment_id}", USAGE)
    total = view.trials(TrialQuery(limit=0)).total
    known = f"it has trials 0 to {total - 1}" if total else "it has no trials yet"
    raise Failure(f"there is no trial '{word}' in experiment {view.experiment_id}: {known}", USAGE)
