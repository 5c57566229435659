"""Is a failed attempt run again?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .trial import FailureKind

__all__ = ["Retries"]


@dataclass(frozen=True, slots=True)
class Retries:
    """How often failed attempts of a trial are run again: `in_all`, or (None) as `by_kind` says; -1 is without end.

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
        """May an attempt that failed so be run again? `failed` counts the earlier failures by kind."""
        if self.in_all is not None:
            return self.in_all < 0 or sum(failed.values()) < self.in_all
        most = self.by_kind.get(kind, 0)
        return most < 0 or failed.get(kind, 0) < most
