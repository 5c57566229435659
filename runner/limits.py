"""What bounds an experiment. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from .retries import Retries

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds an experiment; durations in seconds, None is no bound."""

    trial_concurrency: int = 1
    max_trial_number: int | None = None
    max_trial_duration: float | None = None
    max_experiment_duration: float | None = None
    max_identical_failures: int = 5
    retries: Retries = field(default_factory=Retries)
    fail_fast: bool = False
