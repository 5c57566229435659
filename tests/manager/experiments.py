"""Experiments on imagined trials: made, run, killed at a commit, resumed, and what their stores tell."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.manager.experiment_factory import create_experiment, resume_experiment
from pitchpipe.manager.hooks import Hooks
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.ledger import Totals
from pitchpipe.runner.trial import Trial
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import ExperimentView, TrialQuery
from pitchpipe.store.store import Store

Behaviour = Callable[[Mapping[str, Any]], SimulatedRun]
SPACE = {"x": {"_type": "uniform", "_value": [-5, 5]}, "y": {"_type": "choice", "_value": ["a", "b"]}}


def bowl(parameters: Mapping[str, Any]) -> SimulatedRun:
    """Ten steps towards a value that the parameters decide; longer for some than for others."""
    goal = (parameters["x"] - 1.0) ** 2 + (parameters["y"] == "b")
    steps = [goal + 10.0 / (step + 1) for step in range(10)]
    return SimulatedRun(goal, steps, step=1.0 + abs(parameters["x"]))


def config(**fields: Any) -> ExperimentConfig:
    data = {"search_space": SPACE, "tuner": {"name": "Random"}, "seed": 7, "max_trial_number": 10, **fields}
    return ExperimentConfig.from_dict(data, needs_command=False)


# The base of this room's tuners, which override what they need.
QUIET = """
from pitchpipe import Tuner

class Quiet(Tuner):
    def update_search_space(self, search_space):
        pass

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""


def plugin(directory: Path, class_name: str, source: str, **class_args: Any) -> dict[str, Any]:
    """Write the module of a tuner or an assessor; return its configuration."""
    code = directory / "code"
    code.mkdir(parents=True, exist_ok=True)
    (code / f"{class_name.partition('.')[0]}.py").write_text(source)
    (code / "quiet.py").write_text(QUIET)
    arguments = {"class_args": class_args} if class_args else {}
    return {"class_name": class_name, "code_directory": str(code), **arguments}


@cache
def clock_of(directory: Path) -> VirtualClock:
    """Return the clock of all managers in a directory."""
    return VirtualClock(1000.0)


def created(
    directory: Path,
    given: ExperimentConfig,
    behaviour: Behaviour = bowl,
    clock: VirtualClock | None = None,
    totals: Totals | None = None,
    name: str = "exp",
    **more: Any,
) -> Manager:
    clock = clock or clock_of(directory)
    executor = SimulatedTrialExecutor(behaviour, clock, totals)
    return create_experiment(
        given, directory=directory, experiment_id=name, executor=executor, clock=clock, **more
    )


def resumed(
    directory: Path,
    behaviour: Behaviour = bowl,
    clock: VirtualClock | None = None,
    totals: Totals | None = None,
    **more: Any,
) -> Manager:
    clock = clock or clock_of(directory)
    executor = SimulatedTrialExecutor(behaviour, clock, totals)
    found = ExperimentFolder.find(directory, "exp")
    return resume_experiment(found, executor=executor, clock=clock, **more)


def simulated(
    directory: Path,
    behaviour: Behaviour = bowl,
    clock: VirtualClock | None = None,
    totals: Totals | None = None,
    **fields: Any,
) -> Manager:
    """Create an experiment, and return the manager that resumes it: what it needs is in the store."""
    let_go(created(directory, config(**fields), behaviour, clock, totals))
    return resumed(directory, behaviour, clock, totals)


def let_go(manager: Manager) -> None:
    manager.store.close()
    manager.folder.disown()


def run(manager: Manager) -> ExperimentStatus:
    """Run an experiment to its end; whenever nothing more is to be handled, it must wait for something."""
    idle: list[int] = []
    manager.watch(lambda: idle.append(manager.runner.created) if is_idle(manager) else None)  # type: ignore[union-attr]
    try:
        return asyncio.run(manager.run())
    finally:
        let_go(manager)
        assert idle == []


def is_idle(manager: Manager) -> bool:
    """Return whether an experiment that is not over has no turn to come and waits for nothing."""
    loop = manager._open_loop
    return not (loop.over.done() or loop._is_scheduled or manager.waits())


# --------------------------------------------------------------------------- what a store tells


@contextmanager
def viewed(directory: Path, name: str = "exp") -> Iterator[Store]:
    with closing(Store.view(directory / name / "experiment.db")) as store:
        yield store


def trials_of(directory: Path) -> list[Trial]:
    with viewed(directory) as store:
        return list(store.trials())


def tried(directory: Path, parameter: str = "x", name: str = "exp") -> list[tuple[Any, str]]:
    """Return a parameter of all trials, and who proposed it."""
    with ExperimentView(directory / name) as view:
        trials = view.trials(TrialQuery(limit=None)).trials
    return [(trial.parameters[parameter], trial.parameter_source) for trial in trials]


# What may differ after a resume: how often something was said to a dispatcher, and when the manager ran.
_TABLES = {
    "trials": "*",
    "metrics": "*",
    "attempts": "*",
    "objective_values": "*",
    "experiment": "id, status, reason, error",
    "commands": "*",
}


def story(directory: Path) -> dict[str, list[Any]]:
    """Return all that the database tells."""
    with closing(sqlite3.connect(directory / "exp" / "experiment.db")) as db:
        return {
            table: sorted(db.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in _TABLES.items()
        }


# --------------------------------------------------------------------------- killed at a commit


class Killed(Exception):
    """The manager is killed here."""


class CrashingStore:
    """Counts commits, and dies before or after one of them."""

    def __init__(self, store: Store, at: int, after: bool) -> None:
        self._store, self._left, self._after = store, at, after
        self.crashed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, tick: Any) -> None:
        if self.crashed:
            return  # a dead manager writes nothing
        self._left -= 1
        if self._left == 0 and not self._after:
            self._die()
        self._store.commit(tick)
        if self._left == 0:
            self._die()

    def set_status(self, *args: Any) -> None:
        """Nor does it say goodbye."""

    def _die(self) -> None:
        self.crashed = True
        raise Killed


def run_with_crash(manager: Manager, at: int, after: bool) -> bool:
    """Run until the manager is killed around its n-th commit; False if it ended before."""
    store = CrashingStore(manager.store, at, after)
    manager.store = store  # type: ignore[assignment]
    with contextlib.suppress(Killed):
        run(manager)
    return store.crashed


def comes_back_alike(
    directory: Path,
    kills: Iterable[tuple[int, bool]],
    behaviour: Behaviour = bowl,
    hooks: Callable[[], Hooks] = Hooks,
    **fields: Any,
) -> None:
    """Run an experiment undisturbed, and once for each kill before or after a commit: its story is the same."""

    def hooked(manager: Manager) -> Manager:
        manager.hooks = hooks()
        return manager

    run(hooked(simulated(directory / "whole", behaviour, **fields)))
    for at, after in kills:
        killed = directory / str(at)
        assert run_with_crash(hooked(simulated(killed, behaviour, **fields)), at, after)
        assert run(hooked(resumed(killed, behaviour))) is ExperimentStatus.DONE
        assert story(killed) == story(directory / "whole"), f"killed at commit {at}"


class CopyingStore:
    """Copies the experiment's folder before and after each commit, unless nothing has changed since the last copy.

    That is what a manager that is killed there leaves behind.
    """

    def __init__(self, manager: Manager, to: Path) -> None:
        self._store = manager.store
        self._folder = manager.folder.path
        self._clock = manager.now
        self._to = to
        self._last: tuple[int, float] | None = None
        self.commits = 0
        self.copies: list[tuple[str, Path, float]] = []
        manager.store = self  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, tick: Any) -> None:
        self._copy(f"before commit {self.commits + 1}")
        self._store.commit(tick)
        self.commits += 1
        self._copy(f"after commit {self.commits}")

    def _copy(self, when: str) -> None:
        now = self.commits, self._clock()
        if now != self._last:
            self._last = now
            directory = self._to / when
            ignored = shutil.ignore_patterns("manager.*", "control.sock", "logs")
            shutil.copytree(self._folder, directory / "exp", ignore=ignored)
            (directory / "exp" / "logs").mkdir()
            self.copies.append((when, directory, now[1]))

    def come_to(self, expected: Mapping[str, list[Any]], behaviour: Behaviour, copies: Any = ...) -> None:
        """Resume the experiment in each copy, and see that it comes to the same story."""
        for when, directory, now in self.copies if copies is ... else copies:
            assert run(resumed(directory, behaviour, VirtualClock(now))) is ExperimentStatus.DONE, when
            for table, rows in story(directory).items():
                assert rows == expected[table], f"killed {when}: {table}"
