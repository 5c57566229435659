"""The table as text and as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from measuring import LOAD, Outcome
from rows import Group, Limit, Row

__all__ = ["as_json", "header", "notes", "table_lines"]

Measured = list[tuple[Group, dict[str, Outcome]]]

_HEAD = ("| what | ours | budget | | this machine's limit (our share) | peers |", "|---|---|---|---|---|---|")


def header(
    measured: Measured, versions: Mapping[str, str | None], repetitions: int, *, quick: bool
) -> list[str]:
    """Return what was measured, where and how."""
    there = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
    loads = [
        load for _, outcomes in measured for each in outcomes.values() for load in each.values.get(LOAD, ())
    ]
    load = f"load {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {load}"
    how = f"medians of {repetitions} repetitions, side by side"
    trial_run = "; A QUICK RUN: too small to compare with peers" if quick else ""
    return [f"{there}", f"{machine}; {how}{trial_run}", ""]


def table_lines(measured: Measured) -> list[str]:
    """Return the budget table in Markdown. A ratio above 1 says how many times better ours is."""
    lines = list(_HEAD)
    for group, outcomes in measured:
        lines += [_line(row, outcomes) for row in group.rows]
    return lines


def notes(measured: Measured) -> list[str]:
    """Return what was skipped or failed, and what a row's figure means."""
    lines = []
    for group, outcomes in measured:
        lines += [f"- {row.what}: {row.note}" for row in group.rows if row.note]
        for name, outcome in outcomes.items():
            lines += [f"- {name} ({group.name}) failed: {error}" for error in outcome.errors[:1]]
            lines += [f"- {name} ({group.name}) was skipped: {outcome.skipped}"] if outcome.skipped else []
    return lines


def as_json(measured: Measured, versions: Mapping[str, str | None], *, quick: bool) -> dict[str, Any]:
    """Return everything, for machines."""
    return {
        "versions": dict(versions),
        "cores": os.cpu_count(),
        "quick": quick,
        "rows": [_row_json(row, outcomes) for group, outcomes in measured for row in group.rows],
        "probes": {
            f"{group.name}: {name}": asdict(outcome)
            for group, outcomes in measured
            for name, outcome in outcomes.items()
        },
    }


def _line(row: Row, outcomes: Mapping[str, Outcome]) -> str:
    if row.ours not in outcomes:
        return f"| {row.what} | open | {_budget(row)} | {row.note} | | |"
    mine = row.measured(outcomes)
    shown = "not measured" if mine is None else row.show(mine)
    verdict = row.limit.verdict(mine) if row.limit is not None and mine is not None else ""
    cells = [row.what, shown, _budget(row), verdict, _machine(row, outcomes), _peers(row, outcomes)]
    return f"| {' | '.join(cells)} |"


def _machine(row: Row, outcomes: Mapping[str, Outcome]) -> str:
    found = row.share(outcomes)
    return "" if found is None else f"{row.show(found[0])} ({found[1]:.0%})"


def _peers(row: Row, outcomes: Mapping[str, Outcome]) -> str:
    parts = []
    for name, theirs, ratio in row.compared(outcomes):
        if theirs is not None:
            parts.append(f"{name} {row.show(theirs)}" + (f" (x {ratio:.3g})" if ratio is not None else ""))
    return "; ".join(parts)


def _budget(row: Row) -> str:
    if row.limit is None:
        return ""
    return _limit_text(row, row.limit)


def _limit_text(row: Row, limit: Limit) -> str:
    if limit.value == 0:
        return row.show(0)
    return f"{'>=' if limit.at_least else '<'} {row.show(limit.value)}"


def _row_json(row: Row, outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    mine = row.measured(outcomes) if row.ours in outcomes else None
    compared = row.compared(outcomes) if row.ours in outcomes else []
    share = row.share(outcomes) if row.ours in outcomes else None
    return {
        "what": row.what,
        "ours": mine,
        "limit": None if row.limit is None else row.limit.value,
        "met": None if row.limit is None or mine is None else row.limit.is_met(mine),
        "machine": None if share is None else {"median": share[0], "share": share[1]},
        "peers": {name: {"median": theirs, "ratio": ratio} for name, theirs, ratio in compared},
    }
