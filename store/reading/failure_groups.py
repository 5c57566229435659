"""Failed trials grouped by what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...runner import fingerprint, last_line
from .database import Database

__all__ = ["FailureGroup", "read_failures"]

_SHOWN = 20


@dataclass(slots=True)
class FailureGroup:
    """Trials that failed alike: how many, why (`reason` of the first, with the `error` it left), and the first ones."""

    count: int
    kind: str | None
    reason: str
    last_line: str
    error: str | None
    exit_code: int | None
    sequence_ids: list[int] = field(default_factory=list)


def read_failures(db: Database) -> list[FailureGroup]:
    """The groups of failed trials, the largest first."""
    rows = db.rows(
        "SELECT count(*), kind, reason, error, min(exit_code), group_concat(sequence_id) FROM trials"
        " WHERE status = 'FAILED' GROUP BY kind, reason, error ORDER BY min(sequence_id)"
    )
    groups: dict[tuple[str | None, str], FailureGroup] = {}
    for count, kind, reason, error, exit_code, listed in rows:
        last = last_line(error)
        key = (kind, fingerprint(reason if last in reason else f"{reason}: {last}"))
        if key not in groups:
            groups[key] = FailureGroup(0, kind, reason, last, error, exit_code)
        groups[key].count += count
        groups[key].sequence_ids += map(int, listed.split(",")[:_SHOWN])
    for group in groups.values():
        group.sequence_ids = sorted(group.sequence_ids)[:_SHOWN]
    return sorted(groups.values(), key=lambda group: -group.count)
