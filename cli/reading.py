"""An experiment as its database tells it, for the verbs that only read.

The database is opened read-only: a running manager is not disturbed, and nothing has to run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..runner import BestTrials, ExperimentStatus, Objective, Trial
from ..store import ExperimentFolder, ExperimentRow, Store
from ..store.reading import FailedTrial, failures_alike, retries_by_kind
from .progress import Best

__all__ = ["ViewedExperiment", "is_abandoned", "objectives_of_row", "viewed"]


@dataclass(slots=True)
class ViewedExperiment:
    """What there is to say about an experiment.

    `failures` are ways to fail: how many trials did, and the first; `retries` counts attempts run again by kind.
    """

    folder: ExperimentFolder
    row: ExperimentRow
    objectives: tuple[Objective, ...]
    counts: dict[str, int]
    best: list[Best] = field(default_factory=list)
    failures: list[tuple[int, FailedTrial]] = field(default_factory=list)
    retries: dict[str, int] = field(default_factory=dict)

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
        if self.failures:
            found["failures"] = [_failure_object(count, failure) for count, failure in self.failures]
        if self.retries:
            found["retries"] = self.retries
        return {**found, "reason": self.row.reason} if self.row.reason else found

    @property
    def all_failed(self) -> bool:
        """Did trials fail, and none succeed?"""
        return bool(self.counts.get("FAILED")) and not self.counts.get("SUCCEEDED")

    @property
    def total(self) -> int:
        """How many trials there are."""
        return sum(self.counts.values())


def _failure_object(count: int, failure: FailedTrial) -> dict[str, Any]:
    return {
        "trials": count,
        "kind": failure.kind or None,
        "reason": str(failure),
        "first_sequence_id": failure.sequence_id,
    }


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
        best, failed, again = BestTrials(objectives), list[Trial](), list[Trial]()
        counts = Counter[str]()
        for trial in store.trials():
            counts[trial.status.value] += 1
            if trial.attempt > 1:
                again.append(trial)
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
        failures_alike(failed),
        retries_by_kind(again),
    )


def is_abandoned(folder: ExperimentFolder, status: str) -> bool:
    """Should somebody run the experiment, and nobody does?"""
    return not ExperimentStatus(status).is_final and folder.manager() is None
