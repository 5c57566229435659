"""What a simulated trial does, as a script or as a function: its parameter says whether and how it fails.

Each result carries a token of its run. What was acknowledged, that is, reported by a call that returned, is noted in
the memory of the simulation.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pitchpipe
from pitchpipe.sdk import hosted
from pitchpipe.sdk.current_trial import SpoolChannel

__all__ = ["Note", "Run", "Witness", "behaviour", "script", "train", "witness"]


@dataclass(frozen=True)
class Note:
    """A result that was acknowledged."""

    kind: str
    step: int
    value: float


@dataclass
class Run:
    """One run of a trial's code."""

    token: str
    sequence_id: int
    trial_id: str
    first: int
    process: Any
    began: float
    notes: list[Note] = field(default_factory=list)
    is_over: bool = False


@dataclass
class Witness:
    """All runs, and how long their steps take."""

    steps: int = 6
    pause: float = 0.5
    saves: bool = True
    runs: list[Run] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)


witness = Witness()


def behaviour(x: float) -> str:
    """Return what a trial with this parameter does in the end."""
    part = x * 100 % 10
    if part < 0.4:
        return "raises"
    if part < 0.7:
        return "nan"
    if part < 1.0:
        return "exits"
    return "slow" if part < 1.5 else "succeeds"


def train(parameters: dict[str, Any]) -> None:
    """Report a sum step by step, and save a checkpoint after every second one."""
    from edges import machine

    x = float(parameters["x"])
    saved = pitchpipe.get_checkpoint()
    state = {"step": 0, "sum": 0.0} if saved is None else saved.to_dict()
    process = machine().current.process
    run = Run(
        os.urandom(6).hex(),
        pitchpipe.get_sequence_id(),
        pitchpipe.get_trial_id(),
        state["step"],
        process,
        machine().now,
    )
    _note_overlaps(run)
    witness.runs.append(run)
    machine().note(f"trial {run.sequence_id} begins at step {run.first} in {process.name}: run {run.token}")
    try:
        _steps(run, x, state)
    finally:
        run.is_over = True
        machine().note(f"trial {run.sequence_id} is over: run {run.token}")


def _note_overlaps(run: Run) -> None:
    for other in witness.runs:
        if other.sequence_id == run.sequence_id and not other.is_over and other.process.is_alive:
            witness.overlaps.append(f"trial {run.sequence_id} began while run {other.token} of it lived")


def _steps(run: Run, x: float, state: dict[str, Any]) -> None:
    how = behaviour(x)
    budget = pitchpipe.get_budget()
    steps = witness.steps if budget is None else int(budget)
    while state["step"] < steps:
        state["sum"] += x + state["step"]
        _report(run, "PERIODICAL", state["step"], state["sum"])
        state["step"] += 1
        if state["step"] == min(2, witness.steps) and how == "raises":
            raise RuntimeError("the training diverges")
        if state["step"] == min(2, witness.steps) and how == "exits":
            sys.exit(3)
        if witness.saves and (state["step"] % 2 == 0 or state["step"] == steps):
            pitchpipe.save_checkpoint(state)
        if witness.pause:
            time.sleep(witness.pause * (0.2 + x) * (20 if how == "slow" else 1))
    _report(run, "FINAL", 0, float("nan") if how == "nan" else x)


def _report(run: Run, kind: str, step: int, value: float) -> None:
    report = pitchpipe.report_final_result if kind == "FINAL" else pitchpipe.report_intermediate_result
    report({"default": value, "token": run.token})
    run.notes.append(Note(kind, step, value))


def script(process: Any, environment: Mapping[str, str], stderr: int) -> None:
    """Run the same as a script in a process of its own."""
    from edges import machine

    at = machine()
    at.sleep(at.draw.uniform(0.01, 0.3))
    code = 0
    try:
        channel = SpoolChannel(dict(environment))
        with hosted(channel):
            train(pitchpipe.get_next_parameter())
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:  # noqa: BLE001 (a script ends with its traceback)
        code = 1
        with suppress(OSError):  # the disk is full
            os.write(stderr, traceback.format_exc().encode())
    os.close(stderr)
    at.end(process, code)
