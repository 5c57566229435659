"""What users saw of an experiment, and whether the end agrees with it. It knows nothing of how the product works."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulated_trial import Run, Witness, behaviour

__all__ = ["Seen", "check"]

# The statuses of a trial that may follow each other, over any number of steps (docs/reference/glossary.md).
_LIVE = {"WAITING", "RUNNING", "PAUSED"}
_ENDED = {"SUCCEEDED", "FAILED", "EARLY_STOPPED", "USER_CANCELED", "SYS_CANCELED"}
_AGAIN = {"SYS_CANCELED", "FAILED"}  # a resume, or a user, may run these again

# What must hold even if an older copy of the database was put back.
_EVEN_WITH_A_COPY = ("doubled", "numbers", "unended", "differing", "waiting", "unexplained")


@dataclass
class Seen:
    """What users were told: trials that they added, requests that were granted, and what they read."""

    added: dict[str, float] = field(default_factory=dict)
    killed: dict[str, float] = field(default_factory=dict)
    limits: dict[str, list[Any]] = field(
        default_factory=dict
    )  # values that may hold, the last one granted first
    statuses: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    results: dict[tuple[int, str, int, int], str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def granted(self, name: str, value: Any) -> None:
        """Note a change that was acknowledged."""
        self.limits[name] = [value]

    def asked(self, name: str, value: Any) -> None:
        """Note a change that may have been made: there was no reply."""
        if name in self.limits:
            self.limits[name].append(value)

    def look(self, trials: list[Mapping[str, Any]], metrics: list[Mapping[str, Any]]) -> None:
        """Compare what the database says with what it said before."""
        there = {trial["sequence_id"]: (trial["status"], trial["final"]) for trial in trials}
        for number, (status, final) in self.statuses.items():
            if number not in there:
                self.problems.append(f"vanished: trial {number}, which was {status}")
                continue
            now, final_now = there[number]
            moved = now != status
            if moved and status not in _LIVE | _AGAIN:
                self.problems.append(f"moved: trial {number} from {status} to {now}")
            if not moved and status == "SUCCEEDED" and final != final_now:
                self.problems.append(f"changed: the result of trial {number} from {final} to {final_now}")
        self.statuses = there
        rows = {
            (row["sequence_id"], row["kind"], row["sequence"], row["attempt"]): row["value"]
            for row in metrics
        }
        for key, value in self.results.items():
            if rows.get(key) != value:
                self.problems.append(f"changed: result {key} from {value} to {rows.get(key)}")
        self.results = rows


def read(database: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the trials and the results in a database, as a user reads them."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        trials = [dict(row) for row in db.execute("SELECT * FROM trials ORDER BY sequence_id")]
        metrics = [dict(row) for row in db.execute("SELECT * FROM metrics")]
    return trials, metrics


def check(
    folder: Path, witness: Witness, seen: Seen, *, is_fixed: bool, has_budgets: bool, may_forget: bool
) -> list[str]:
    """Return what is wrong with the end of an experiment.

    With `is_fixed`, results follow from the parameters; with `has_budgets`, a trial continues after a final result;
    with `may_forget`, an older copy of the database was put back.
    """
    database = folder / "experiment.db"
    trials, metrics = read(database)
    seen.look(trials, metrics)
    problems = [*seen.problems, *(f"twice at once: {each}" for each in witness.overlaps)]
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        config = json.loads(db.execute("SELECT config FROM experiment").fetchone()[0])
        sent = Counter(
            (each["trial_job_id"], each["type"], each["sequence"])
            for (text,) in db.execute("SELECT payload FROM commands WHERE code = 'ME'")
            if "imported" not in (each := json.loads(text))
        )
        attempts = Counter(number for (number,) in db.execute("SELECT sequence_id FROM attempts"))
        numbers = {
            number: [
                attempt
                for (attempt,) in db.execute(
                    "SELECT attempt FROM attempts WHERE sequence_id = ? ORDER BY attempt", (number,)
                )
            ]
            for number in attempts
        }
    problems += [
        f"doubled: the tuner was sent {key} {count} times" for key, count in sent.items() if count > 1
    ]
    if [trial["sequence_id"] for trial in trials] != list(range(len(trials))):
        problems.append(f"numbers: trials {[trial['sequence_id'] for trial in trials]}")
    by_id = {trial["trial_id"]: trial for trial in trials}
    for trial_id, x in seen.added.items():
        if trial_id not in by_id:
            problems.append(f"lost: the trial {trial_id} that a user added")
        elif _x(by_id[trial_id]) != x and is_fixed:
            problems.append(f"changed: the parameters of the trial {trial_id} that a user added")
    for trial_id, at in seen.killed.items():
        problems += _after_kill(by_id.get(trial_id), trial_id, at, witness)
    for name, values in seen.limits.items():
        if config.get(name) not in values:
            problems.append(f"lost: {name} is {config.get(name)}, and users were told {values}")
    for trial in trials:
        rows = [row for row in metrics if row["sequence_id"] == trial["sequence_id"]]
        runs = [run for run in witness.runs if run.trial_id == trial["trial_id"]]
        problems += _check_trial(trial, rows, runs, is_fixed=is_fixed, has_budgets=has_budgets)
        before = numbers.get(trial["sequence_id"], [])
        of_runs = [row["attempt"] for row in rows]
        if len(set(before)) < len(before) or max([0, *before, *of_runs]) > trial["attempt"] or 0 in of_runs:
            problems.append(
                f"numbers: trial {trial['sequence_id']} has attempts {before} and {trial['attempt']}"
            )
    if may_forget:
        return [each for each in problems if each.partition(":")[0] in _EVEN_WITH_A_COPY]
    return problems


def _x(trial: Mapping[str, Any]) -> float:
    return float(json.loads(trial["record"])["parameters"]["x"])


def _after_kill(trial: Mapping[str, Any] | None, trial_id: str, at: float, witness: Witness) -> list[str]:
    if trial is None:
        return [f"lost: the trial {trial_id} that a user killed"]
    runs = [run for run in witness.runs if run.trial_id == trial_id]
    late = [run for run in runs if run.began > at + 60]
    if late:
        return [
            f"killed: trial {trial['sequence_id']} runs again {late[0].began - at:.1f} s after a user killed it"
        ]
    had_final = any(note.kind == "FINAL" for run in runs for note in run.notes)
    if trial["status"] not in ("USER_CANCELED", "FAILED", "EARLY_STOPPED") and not had_final:
        return [f"killed: trial {trial['sequence_id']} is {trial['status']} after a user killed it"]
    return []


def _check_trial(
    trial: Mapping[str, Any],
    rows: list[dict[str, Any]],
    runs: list[Run],
    *,
    is_fixed: bool,
    has_budgets: bool,
) -> list[str]:
    problems = []
    where = f"trial {trial['sequence_id']} ({trial['status']})"
    values = [(row["kind"], json.loads(row["value"])) for row in rows]
    held = Counter((value["token"], kind, repr(value["default"])) for kind, value in values)
    for run in runs:
        for note in run.notes:
            if not held[run.token, note.kind, repr(note.value)] and trial["status"] in (
                "SUCCEEDED",
                "FAILED",
                "PAUSED",
            ):
                problems.append(f"lost: {where}: {note.kind} {note.step} of run {run.token} was acknowledged")
    problems += [f"doubled: {where}: {key} {count} times" for key, count in held.items() if count > 1]
    counted = [row for row in rows if not row["superseded"]]
    places = Counter((row["kind"], row["sequence"]) for row in counted)
    problems += [
        f"doubled: {where}: {place} counts {count} times" for place, count in places.items() if count > 1
    ]
    finals = {
        run.token for run in runs for note in run.notes if note.kind == "FINAL" and math.isfinite(note.value)
    }
    if len(finals) > 1 and not has_budgets:
        problems.append(f"repeated: {where}: {len(finals)} runs reported a final result")
    if trial["status"] in _LIVE - {"PAUSED"}:
        problems.append(f"unended: {where}")
    if is_fixed:
        problems += _check_values(trial, where, counted)
    return problems


def _check_values(trial: Mapping[str, Any], where: str, counted: list[dict[str, Any]]) -> list[str]:
    problems = []
    x = _x(trial)
    how = behaviour(x)
    for row in counted:
        value = json.loads(row["value"])["default"]
        expected = x if row["kind"] == "FINAL" else sum(x + each for each in range(row["sequence"] + 1))
        if row["kind"] == "FINAL" and how == "nan":
            expected = math.nan
        if not (math.isnan(expected) and math.isnan(value)) and abs(value - expected) > 1e-9:
            problems.append(f"differing: {where}: {row['kind']} {row['sequence']} is {value}, not {expected}")
    usual = {
        "succeeds": "SUCCEEDED",
        "slow": "SUCCEEDED",
        "raises": "FAILED",
        "nan": "FAILED",
        "exits": "FAILED",
    }[how]
    allowed = {usual, "EARLY_STOPPED", "USER_CANCELED", "SYS_CANCELED"}
    if trial["status"] in _ENDED - allowed and not (
        trial["status"] == "FAILED" and trial["kind"] == "TIMEOUT"
    ):
        problems.append(
            f"differing: {where}: {trial['reason']}, though it {how}: {(trial['error'] or '')[-300:]}"
        )
    return problems
