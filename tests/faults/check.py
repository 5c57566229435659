"""Compares what trials saw acknowledged with what the experiment's database holds."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Findings", "beginnings", "check_experiment"]


@dataclass
class Findings:
    """The counts of one experiment; `problems` are sentences."""

    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    differing: int = 0
    orphans: int = 0
    stuck: int = 0
    repeated: int = 0
    unexplained: int = 0  # a traceback in place of a sentence
    superseded: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Add the findings of another experiment."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.problems += other.problems

    def note(self, what: str, problem: str, count: int = 1) -> None:
        """Count a problem."""
        setattr(self, what, getattr(self, what) + count)
        self.problems.append(f"{what}: {problem}")


COUNTED = (
    "acknowledged",
    "lost",
    "doubled",
    "differing",
    "orphans",
    "stuck",
    "repeated",
    "unexplained",
    "superseded",
)


def check_experiment(
    folder: Path,
    witness: Path,
    expected: list[float] | None,
    steps: int,
    forgotten: Collection[str] = frozenset(),
) -> Findings:
    """Find what was lost, doubled or is different; `expected` has the x of each trial, by sequence id.

    Runs that began after the database was copied, which was put back later, may be `forgotten`.
    """
    found = Findings()
    with closing(sqlite3.connect(f"file:{folder / 'experiment.db'}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        trials = [dict(row) for row in db.execute("SELECT * FROM trials ORDER BY sequence_id")]
        metrics = [dict(row) for row in db.execute("SELECT * FROM metrics")]
        commands = db.execute("SELECT payload FROM commands WHERE code = 'ME'").fetchall()
    _check_parameters(found, trials, expected)
    for trial in trials:
        rows = [row for row in metrics if row["sequence_id"] == trial["sequence_id"]]
        notes = [note for note in _notes(witness / str(trial["sequence_id"])) if note[0] not in forgotten]
        _check_trial(found, trial, rows, notes, steps)
    sent = Counter(_metric(json.loads(payload)) for (payload,) in commands)
    for key, count in sent.items():
        if count > 1:
            found.note("doubled", f"the dispatcher was sent {key} {count} times")
    return found


def beginnings(witness: Path) -> dict[str, float]:
    """Return when each run began."""
    notes = [note for path in witness.iterdir() for note in _notes(path)]
    return {token: more[-1] for token, what, *more in notes if what == "begin"}


def _notes(path: Path) -> list[list[Any]]:
    """Return what a trial noted; the last line of a killed run may be cut."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")]


def _metric(metric: dict[str, Any]) -> tuple[str, str, int]:
    return metric["trial_job_id"], metric["type"], metric["sequence"]


def _check_parameters(found: Findings, trials: list[dict[str, Any]], expected: list[float] | None) -> None:
    if [trial["sequence_id"] for trial in trials] != list(range(len(trials))):
        found.note("differing", f"sequence ids {[trial['sequence_id'] for trial in trials]}")
    if expected is None:
        return
    if len(trials) != len(expected):
        found.note("differing", f"{len(trials)} trials instead of {len(expected)}")
    for trial, x in zip(trials, expected, strict=False):
        if _x(trial) != x:
            found.note("differing", f"trial {trial['sequence_id']} has x = {_x(trial)} instead of {x}")


def _x(trial: dict[str, Any]) -> float:
    return json.loads(trial["record"])["parameters"]["x"]


def _check_trial(
    found: Findings, trial: dict[str, Any], rows: list[dict[str, Any]], notes: list[list[Any]], steps: int
) -> None:
    number, x = trial["sequence_id"], _x(trial)
    where = f"trial {number} ({trial['status']})"
    held = Counter(_key(row) for row in rows)
    for token, what, step, *_ in notes:
        if what == "begin":
            continue
        found.acknowledged += 1
        kind = "FINAL" if what == "final" else "PERIODICAL"
        if (token, kind, step if kind == "PERIODICAL" else 0) not in held and trial["status"] == "SUCCEEDED":
            found.note("lost", f"{where}: {what} {step} of run {token} was acknowledged and is not stored")
    for key, count in held.items():
        if count > 1:
            found.note("doubled", f"{where}: {key} is stored {count} times")
    counted = [row for row in rows if not row["superseded"]]
    found.superseded += len(rows) - len(counted)
    places = Counter((row["kind"], row["sequence"]) for row in counted)
    for place, count in places.items():
        if count > 1:
            found.note("doubled", f"{where}: {place} counts {count} times")
    _check_values(found, where, x, counted)
    finals = {token for token, what, *_ in notes if what == "final"}
    if len(finals) > 1:
        found.note("repeated", f"{where}: {len(finals)} runs reported a final result")
    if trial["status"] == "SUCCEEDED":
        missing = [step for step in range(steps) if ("PERIODICAL", step) not in places]
        if missing:
            found.note("lost", f"{where}: results {missing} are missing", len(missing))
    elif trial["status"] != "EARLY_STOPPED":
        found.note("differing", f"{where}: {trial['reason']}")


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return json.loads(row["value"])["token"], row["kind"], row["sequence"]


def _check_values(found: Findings, where: str, x: float, counted: list[dict[str, Any]]) -> None:
    """Check that a trial that continues from a checkpoint reports what it would have reported without."""
    for row in counted:
        step, value = row["sequence"], json.loads(row["value"])["default"]
        expected = x if row["kind"] == "FINAL" else sum(x + each for each in range(step + 1))
        if abs(value - expected) > 1e-9:
            found.note("differing", f"{where}: {row['kind']} {step} is {value} instead of {expected}")
