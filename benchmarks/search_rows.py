"""Rows: what a suggestion costs."""

from __future__ import annotations

from measuring import Probe
from rows import Group, Limit, Peer, Row
from units import milliseconds

__all__ = ["GROUPS"]


def _row(results: int, limit: float | None) -> Row:
    return Row(
        f"TPE, 10 parameters: suggestion after {results:,} results (with learning the result before it)",
        f"after_{results}",
        None if limit is None else Limit(limit, at_least=False),
        milliseconds,
        peers=(Peer("Optuna TPE"),),
    )


GROUPS = [
    Group(
        "tpe",
        [
            Probe("Pitchpipe", "ours_tpe.py", 50_000, 2_000),
            Probe("Optuna TPE", "optuna_tpe.py", 50_000, 2_000, needs="optuna"),
        ],
        [_row(1_000, 1e-3), _row(10_000, 5e-3), _row(50_000, None)],
    ),
]
