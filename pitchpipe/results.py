"""What an experiment came to, as objects and tables that need no manager any more."""

# The sub-packages lie beside this folder until the package is built, where type checkers do not see them.
# pyright: reportMissingImports=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .plots import Plots

__all__ = ["BestTrial", "ExperimentResult", "result_of"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BestTrial:
    """A best trial; `value` is a number, with several objectives a number by name."""

    trial_id: str
    sequence_id: int
    value: float | dict[str, float]
    parameters: dict[str, Any]


@dataclass(frozen=True)
class ExperimentResult(Plots):
    """How an experiment stands or ended.

    `best` is the best trial, None if none succeeded, and the list of the Pareto front with several objectives;
    `directions` maps the name of each objective to `minimize` or `maximize`. The rows of `trials` are read from the
    experiment's folder when they are first asked for.
    """

    id: str
    status: str
    folder: Path
    counts: dict[str, int]
    best: BestTrial | list[BestTrial] | None
    reason: str = ""
    directions: dict[str, str] | None = None

    @cached_property
    def trials(self) -> list[Row]:
        """All trials in the order in which they were made, as plain dicts."""
        from .manager.hooks import trial_row
        from .store import Store

        store = Store.view(self.folder / "experiment.db")
        try:
            store.objectives = tuple(self._directions)
            return [trial_row(trial, store.objectives) for trial in store.trials()]
        finally:
            store.close()

    def trial(self, trial_id: str) -> Row:
        """The trial with this id; raises `KeyError`."""
        for row in self.trials:
            if row["trial_id"] == trial_id:
                return row
        raise KeyError(f"experiment {self.id} has no trial {trial_id}")

    def best_by(self, objective: str | None = None) -> Row | None:
        """The trial with the best value of one objective (the first, if none is named); None if none succeeded.

        Raises `KeyError` for an objective that the experiment has not.
        """
        name = objective or next(iter(self._directions))
        if name not in self._directions:
            raise KeyError(
                f"'{name}' is no objective of experiment {self.id}: it has {list(self._directions)}"
            )
        sign = 1.0 if self._directions[name] == "minimize" else -1.0
        succeeded = [row for row in self.trials if row["status"] == "SUCCEEDED"]
        return min(succeeded, key=lambda row: sign * _value(row, name), default=None)

    def dataframe(self) -> Any:
        """The trials as a pandas DataFrame: one row each, nested columns as `parameters.x`; needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("dataframe() needs pandas: pip install pandas") from error
        return pandas.DataFrame([_flat(row) for row in self.trials])

    def _folder_to_plot(self) -> Path:
        return self.folder

    @property
    def _directions(self) -> dict[str, str]:
        return self.directions or {"default": "minimize"}


def _flat(row: Row, prefix: str = "") -> Row:
    """A row without dicts in it.

    >>> _flat({"id": "a", "parameters": {"x": 1, "layer": {"kernel": 3}}})
    {'id': 'a', 'parameters.x': 1, 'parameters.layer.kernel': 3}
    """
    flat: Row = {}
    for name, value in row.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _value(row: Row, objective: str) -> float:
    value = row["value"]
    return value[objective] if isinstance(value, dict) else value


def result_of(folder: Path) -> ExperimentResult:
    """What the folder of an experiment says, whether it runs or not; raises `StoreError`."""
    from .config import ExperimentConfig
    from .manager import objectives_of
    from .runner import BestTrials
    from .store import Store

    store = Store.view(folder / "experiment.db")
    try:
        row = store.experiment()
        objectives = objectives_of(ExperimentConfig.from_canonical(row.config))
        store.objectives = tuple(objective.name for objective in objectives)
        best = BestTrials(objectives)
        for trial in store.trials():
            if trial.status == "SUCCEEDED":
                best.add(trial)
        counts = store.counts()
    finally:
        store.close()
    front = [best_trial(trial, store.objectives) for trial in best.front]
    return ExperimentResult(
        row.id,
        row.status,
        folder,
        counts,
        front if len(objectives) > 1 else next(iter(front), None),
        row.reason,
        {objective.name: objective.direction for objective in objectives},
    )


def best_trial(trial: Any, names: tuple[str, ...]) -> BestTrial:
    """A trial of the runner as one of the best."""
    from .manager.hooks import trial_row

    row = trial_row(trial, names)
    return BestTrial(trial.trial_id, trial.sequence_id, row["value"], row["parameters"])
