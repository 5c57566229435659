"""Experiments on simulated trials whose manager dies around random commits: each must equal the uninterrupted one."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import Any

from check import Findings
from laboratory import Outcome
from plan import Plan

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager.experiment_factory import create_experiment, resume_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.store import Store

__all__ = ["POINTS", "run_simulated"]

POINTS = ("simulated:before-commit", "simulated:after-commit")
CRASHES = 3


class Killed(Exception):
    """The manager is killed here."""


class MortalStore:
    """A store that dies before or after its n-th commit; a dead manager writes nothing more."""

    def __init__(self, store: Store, at: int, after: bool) -> None:
        self._store, self._left, self._after = store, at, after
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, tick: Any) -> None:
        if self.is_dead:
            return
        self._left -= 1
        if self._left or self._after:
            self._store.commit(tick)
        if not self._left:
            self.is_dead = True
            raise Killed

    def set_status(self, *_: Any) -> None:
        """Nor does it say goodbye."""


def run_simulated(seed: int, number: int) -> Outcome:
    """Run one experiment without and with deaths, and compare them."""
    draw = random.Random(f"{seed}/simulated/{number}")
    config = _config(draw)
    outcome = Outcome(Plan(number, "simulated", "simulated", draw.randrange(2**31), False, False))
    folder = Path(tempfile.mkdtemp(prefix="pf-", dir="/tmp"))
    try:
        _run(_made(folder / "whole", config, VirtualClock(1000.0)))
        outcome.findings = _compare(folder, config, draw, outcome.hits)
        outcome.lives = 2 + sum(outcome.hits.values())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _config(draw: random.Random) -> ExperimentConfig:
    data: dict[str, Any] = {
        "search_space": {
            "x": {"_type": "uniform", "_value": [-5, 5]},
            "y": {"_type": "choice", "_value": ["a", "b"]},
        },
        "tuner": {"name": draw.choice(["Random", "TPE"])},
        "seed": draw.randrange(1000),
        "max_trial_number": draw.randint(8, 14),
        "trial_concurrency": draw.randint(1, 4),
    }
    if draw.random() < 0.6:
        data["assessor"] = {"name": "Medianstop"}
    return ExperimentConfig.from_dict(data, needs_command=False)


def _bowl(parameters: Mapping[str, Any]) -> SimulatedRun:
    goal = (parameters["x"] - 1.0) ** 2 + (parameters["y"] == "b")
    steps = [goal + 10.0 / (step + 1) for step in range(10)]
    return SimulatedRun(goal, steps, step=1.0 + abs(parameters["x"]))


def _made(directory: Path, config: ExperimentConfig, clock: VirtualClock) -> Manager:
    executor = SimulatedTrialExecutor(_bowl, clock)
    return create_experiment(config, directory=directory, experiment_id="exp", executor=executor, clock=clock)


def _resumed(directory: Path, clock: VirtualClock) -> Manager:
    folder = ExperimentFolder.find(directory, "exp")
    return resume_experiment(folder, executor=SimulatedTrialExecutor(_bowl, clock), clock=clock)


def _run(manager: Manager) -> None:
    try:
        asyncio.run(asyncio.wait_for(manager.run(), 60))
    finally:
        manager.store.close()
        manager.folder.disown()


def _compare(folder: Path, config: ExperimentConfig, draw: random.Random, hits: Counter[str]) -> Findings:
    clock = VirtualClock(1000.0)
    manager = _made(folder, config, clock)
    deaths = []
    for _ in range(CRASHES):
        at, after = draw.randint(1, 40), draw.random() < 0.5
        manager.store = mortal = MortalStore(manager.store, at, after)  # type: ignore[assignment]
        with contextlib.suppress(Killed):
            _run(manager)
        if not mortal.is_dead:
            break  # the experiment ended before that
        hits[POINTS[after]] += 1
        deaths.append((at, POINTS[after]))
        manager = _resumed(folder, clock)
    else:
        _run(manager)
    found = Findings()
    whole, mine = _story(folder / "whole"), _story(folder)
    found.acknowledged = sum(len(metrics) for *_, metrics in whole)
    for expected, trial in zip(whole, mine, strict=False):
        if expected != trial:
            found.note("differing", f"{trial} instead of {expected} after {deaths}")
            break
    if len(whole) != len(mine):
        found.note("differing", f"{len(mine)} trials instead of {len(whole)} after {deaths}")
    return found


def _story(directory: Path) -> list[tuple[Any, ...]]:
    """Return all that an experiment stored, trial by trial."""
    names = ("sequence_id", "status", "record", "final", "reason", "start_time", "end_time")
    with closing(Store.view(directory / "exp" / "experiment.db")) as store:
        metrics = list(store.metrics())
        return [
            (*attrgetter(*names)(trial), [row[1:] for row in metrics if row[0] == trial.sequence_id])
            for trial in store.trials()
        ]
