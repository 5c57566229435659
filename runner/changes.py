"""What the runner has changed since the last commit, in the form that the store takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from .trial import FailureKind, Trial


@dataclass(slots=True)
class MetricRow:
    """One reported result. The fields are positional because that is faster."""

    trial: Trial
    attempt: int
    kind: str
    sequence: int
    value: str
    time: float


@dataclass(slots=True, kw_only=True)
class AttemptRow:
    """An attempt after which its trial was retried or paused."""

    sequence_id: int
    attempt: int
    outcome: str
    agent: str | None
    start_time: float | None
    end_time: float
    reason: str
    kind: FailureKind | None = None
    exit_code: int | None = None
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class Changes:
    """What has changed since the last commit.

    `superseded`: (sequence id, last attempt, sequence) of trials whose results from `sequence`, in that attempt and
    earlier ones, no longer count. `exports`: (sequence id, format, path) of what trials exported.
    """

    trials: dict[str, Trial] = field(default_factory=dict)
    metrics: list[MetricRow] = field(default_factory=list)
    attempts: list[AttemptRow] = field(default_factory=list)
    superseded: list[tuple[int, int, int]] = field(default_factory=list)
    exports: list[tuple[int, str, str]] = field(default_factory=list)
