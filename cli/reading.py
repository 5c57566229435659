"""An experiment as its database tells it, for the verbs that only read.

The database is opened read-only: a running manager is not disturbed, and nothing has to run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..manager.experiment_status import ExperimentStatus
from ..manager.folder import ExperimentFolder
from ..manager.results import BestTrials, Objective
from ..manager.store import ExperimentRow, Store
from ..manager.trial import Trial
from .progress import Best, FailedTrial

__all__ = ["ViewedExperiment", "is_abandoned", "objectives_of_row", "viewed"]


@dataclass(slots=True)
class ViewedExperiment:
    """What there is to say about an experiment; `failures` are kinds: how many trials, and the first."""

    folder: ExperimentFolder
    row: ExperimentRow
    objectives: tuple[Objective, ...]
    counts: dict[str, int]
    best: list[Best] = field(default_factory=list)
    failures: list[tuple[int, FailedTrial]] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, Any]:
        """The object that scripts get."""
        best = [
            {
                "trial_id": b.trial_id,
                "sequence_id": b.sequence_id,
                "value": b.value,
                "parameters": b.parameters,
            }
            for b in self.best
        ]
        found = {
            "id": self.row.id,
            "status": self.row.status,
            "folder": str(self.folder.path),
            "counts": self.counts,
            "best": best if len(self.objectives) > 1 else (best[0] if best else None),
        }
        return {**found, "reason": self.row.reason} if self.row.reason else found

    @property
    def total(self) -> int:
        """How many trials there are."""
        return sum(self.counts.values())


@contextmanager
def viewed(folder: ExperimentFolder) -> Iterator[Store]:
    """The database of an experiment, read-only, with its objectives."""
    store = Store.view(folder.database)
    try:
        store.objectives = tuple(objective.name for objective in objectives_of_row(store.experiment()))
        yield store
    finally:
        store.close()


def objectives_of_row(row: ExperimentRow) -> tuple[Objective, ...]:
    """What is optimised, from the stored config."""
    found = row.config.get("objectives") or [{"direction": "minimize"}]
    return tuple(
        Objective(item.get("name", "default"), "maximize" if item["direction"] == "maximize" else "minimize")
        for item in found
    )


def read(folder: ExperimentFolder) -> ViewedExperiment:
    """All that a summary needs of an experiment."""
    with viewed(folder) as store:
        row = store.experiment()
        objectives = objectives_of_row(row)
        best, failed = BestTrials(objectives), list[Trial]()
        counts = Counter[str]()
        for trial in store.trials():
            counts[trial.status.value] += 1
            if trial.status == "SUCCEEDED":
                best.add(trial)
            elif trial.status == "FAILED":
                failed.append(trial)
        names = store.objectives
    return ViewedExperiment(
        folder,
        row,
        objectives,
        dict(counts),
        [Best.of(trial, names) for trial in best.front],
        _grouped(failed),
    )


def _grouped(failed: list[Trial]) -> list[tuple[int, FailedTrial]]:
    """Failures that read alike count as one kind; the most frequent kind comes first."""
    kinds: dict[tuple[str, str], list[FailedTrial]] = {}
    for trial in map(FailedTrial.of, failed):
        kinds.setdefault((trial.reason, trial.last_line), []).append(trial)
    return [(len(kind), kind[0]) for kind in sorted(kinds.values(), key=len, reverse=True)]


def is_abandoned(folder: ExperimentFolder, status: str) -> bool:
    """Should somebody run the experiment, and nobody does?"""
    return not ExperimentStatus(status).is_final and folder.manager() is None
