"""What bounds an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .trial import FailureKind


@dataclass(frozen=True, slots=True)
class Retries:
    """How often failed attempts of a trial are retried: `in_all`, or (None) as `by_kind` says; -1 is without end.

    >>> Retries(by_kind={FailureKind.OOM: 1}).allow(FailureKind.OOM, {"INFRA": 2})
    True
    >>> Retries(in_all=2).allow(FailureKind.OOM, {"INFRA": 2})
    False
    >>> Retries(in_all=-1).allow(FailureKind.OOM, {"OOM": 1000})
    True
    """

    in_all: int | None = None
    by_kind: Mapping[FailureKind, int] = field(default_factory=lambda: {FailureKind.INFRA: 3})

    def allow(self, kind: FailureKind, failed: Mapping[str, int]) -> bool:
        """Return whether a failed attempt is retried; `failed` counts the earlier failures by kind."""
        if self.in_all is not None:
            return self.in_all < 0 or sum(failed.values()) < self.in_all
        most = self.by_kind.get(kind, 0)
        return most < 0 or failed.get(kind, 0) < most


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of an experiment; durations in seconds, None is no bound."""

    trial_concurrency: int = 1
    max_trial_number: int | None = None
    max_trial_duration: float | None = None
    max_experiment_duration: float | None = None
    max_identical_failures: int = 5
    retries: Retries = field(default_factory=Retries)
    fail_fast: bool = False
