"""Schedules: with which parameters a trial was trained when, followed through the checkpoints that it copied.

The record of a trial has its own steps, and for each copy which steps of the other trial came before
(`protocol.RecordedStep`). What came before a copy is read in the record of that other trial, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...protocol import RecordedStep
from ..errors import understood
from .database import Database
from .json_values import parsed
from .read_model import Schedule, ScheduleStep

# As `with_schedule` writes it; a parameter may be called so, but its value does not begin so.
_ANY = 'SELECT 1 FROM trials WHERE instr(record, \'"schedule": [{"first": \') LIMIT 1'


class NoScheduleError(LookupError):
    """No trial of the experiment continued with other parameters, or from another trial's checkpoint."""


@dataclass(frozen=True, slots=True)
class _Log:
    """The steps that a trial recorded, and how many results it has."""

    number: int
    steps: list[RecordedStep]
    results: int


def read_schedules(db: Database, numbers: Sequence[int]) -> list[Schedule]:
    """Return the schedules of these trials; one whose parameters never changed has one step.

    Raise `NoScheduleError` if this is so for all trials of the experiment.
    """
    if not has_schedules(db):
        raise NoScheduleError(
            f"no trial of experiment {db.path.parent.name} has a schedule: none continued with other parameters or from"
            " another trial's checkpoint, as PBT and PB2 let trials do after their first interval"
        )
    logs = dict[int, _Log]()

    def log_of(number: int) -> _Log:
        if number not in logs:
            logs[number] = _read_log(db, number)
        return logs[number]

    found = list[Schedule]()
    for number in numbers:
        with understood(db.path, f"the schedule of trial {number}"):
            found.append(_schedule(log_of(number), log_of))
    return found


def has_schedules(db: Database) -> bool:
    """Return whether a trial has continued with other parameters, or from another trial's checkpoint."""
    return db.row(_ANY) is not None


def _read_log(db: Database, number: int) -> _Log:
    row = db.row("SELECT record, next_sequence, finals, budget FROM trials WHERE sequence_id = ?", (number,))
    if row is None:
        raise ValueError(f"there is no trial {number}")
    record, results, finals, budget = row
    fields = parsed(record)
    whole = RecordedStep(first=0, parameters=fields["parameters"])
    steps: list[RecordedStep] = fields.get("schedule") or [whole]
    if not results and finals and budget:
        results = int(budget)  # it reports only final results: each spends its budget
    return _Log(number, steps, max(results, steps[-1]["first"]))


def _schedule(log: _Log, log_of: Callable[[int], _Log]) -> Schedule:
    parts, done = list[ScheduleStep](), 0
    *before, (_, last, _) = _ancestry(log, log_of)
    for number, steps, end in before:
        ahead = done - steps[0]["first"]
        parts += [_part(number, step, ahead) for step in steps if step["first"] < end]
        done = ahead + end
    ahead = done - last[0]["first"]  # of the trial's own numbers: what it copied may have trained longer
    return Schedule(
        sequence_id=log.number,
        results=ahead + log.results,
        steps=[*parts, *(_part(log.number, step, ahead) for step in last)],
        own=[_part(log.number, step, 0) for step in _standing(log.steps)],
        own_results=log.results,
    )


def _part(number: int, step: RecordedStep, ahead: int) -> ScheduleStep:
    return ScheduleStep(
        begin=ahead + step["first"],
        parameters=step["parameters"],
        trial=number,
        first=step["first"],
        copied_from=step.get("copied_from"),
        copied_at=step.get("copied_at"),
    )


def _ancestry(log: _Log, log_of: Callable[[int], _Log]) -> list[tuple[int, list[RecordedStep], int]]:
    """Return number, steps and results of each trial through which a training went, the first one first."""
    found, count, end = list[tuple[int, list[RecordedStep], int]](), len(log.steps), log.results
    seen = set[tuple[int, int]]()
    # A trial copies what was recorded before: only the records of a damaged database lead back to where they began.
    while (log.number, count) not in seen:
        seen.add((log.number, count))
        steps = _standing(log.steps[: max(count, 1)])
        copies = [place for place, step in enumerate(steps) if "copied_from" in step]
        steps = steps[copies[-1] if copies else 0 :]
        found.append((log.number, steps, end))
        first = steps[0]
        if not ("copied_from" in first and "copied_at" in first and "copied_steps" in first):
            return found[::-1]
        log, count, end = log_of(first["copied_from"]), first["copied_steps"], first["copied_at"]
    raise ValueError(f"trial {log.number} copies itself")


def _standing(recorded: Sequence[RecordedStep]) -> list[RecordedStep]:
    """Return the steps without those that a later one replaced, which went on with their checkpoint.

    >>> copy = {"first": 4, "parameters": {"x": 2}, "copied_from": 7, "copied_at": 4, "copied_steps": 1}
    >>> [step["first"] for step in _standing([{"first": 0, "parameters": {"x": 1}}, copy])]
    [0, 4]
    >>> _standing([copy, {"first": 4, "parameters": {"x": 3}}])[0]["copied_from"]
    7
    """
    steps = list[RecordedStep]()
    for step in recorded:
        while steps and steps[-1]["first"] >= step["first"]:
            replaced = steps.pop()
            if replaced["first"] == step["first"] and "copied_from" not in step:
                merged = replaced.copy()
                merged["parameters"] = step["parameters"]
                step = merged
        steps.append(step)
    return steps
