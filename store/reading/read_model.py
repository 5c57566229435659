"""What readers get: an experiment and its trials as dataclasses.

`to_json` writes their fields in the order in which they stand here, for the HTTP API and `--json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...runner import ExperimentStatus


@dataclass(frozen=True, slots=True)
class Goal:
    """An objective that is optimised."""

    name: str
    direction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExperiment:
    """The row of an experiment without its configuration; times are seconds since the epoch, `run_time` seconds."""

    id: str
    name: str | None
    status: str
    reason: str
    error: str
    created: float
    end_time: float | None
    run_time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(StoredExperiment):
    """The state of an experiment. The HTTP API and `export` write its fields in this order."""

    folder: str
    is_running: bool  # a manager is alive
    is_search: bool  # its caller runs the trials
    has_program: bool | None  # whether a living program runs a trial of a search; None without a search
    counts: dict[str, int]  # trials by status
    trials: int
    intermediate_results: int
    trials_per_minute: float
    limits: dict[str, float | None]
    objectives: list[Goal]
    outcome_limits: dict[str, str]
    defaults: dict[str, Any] | None
    best: list[dict[str, Any]]
    closest: int | None  # the trial that exceeds the limits of the metrics least, while none keeps them
    remaining: float | None  # estimated seconds

    @property
    def is_abandoned(self) -> bool:
        """Whether the experiment should run and has no manager, and needs one."""
        has_runner = self.is_running or self.is_search
        return not ExperimentStatus(self.status).is_final and not has_runner

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics that are optimised or limited."""
        return list(dict.fromkeys([*(goal.name for goal in self.objectives), *self.outcome_limits]))
