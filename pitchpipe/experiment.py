"""`Experiment`: the tuner from Python, for functions and for commands, without a YAML file."""

# The sub-packages lie beside this folder until the package is built, where type checkers do not see them.
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
import concurrent.futures
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["BestTrial", "Experiment", "ExperimentResult"]


@dataclass(frozen=True, slots=True)
class BestTrial:
    """A best trial; `value` is a number, with several objectives a number by name."""

    trial_id: str
    sequence_id: int
    value: float | dict[str, float]
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """How an experiment ended.

    `best` is the best trial, None if none succeeded, and the list of the Pareto front with several objectives.
    """

    id: str
    status: str
    folder: Path
    counts: dict[str, int]
    best: BestTrial | list[BestTrial] | None
    reason: str = ""


class Experiment:
    """One search for good parameters.

    `trial` is a function of a dict of parameters that returns its final result (or reports it), or a command line.
    Other keyword arguments are the fields of experiment.yml in snake_case, as docs/config.md lists them; `platform`
    is short for `training_service={"platform": ...}`, `directory` the folder that holds the experiment's folder.
    Raises `ConfigError` with every problem that the configuration has.

    >>> import tempfile
    >>> def square(parameters):
    ...     return (parameters["x"] - 1) ** 2
    >>> experiment = Experiment(square, {"x": {"_type": "uniform", "_value": [-5, 5]}}, platform="local",
    ...                         tuner={"name": "Random"}, max_trial_number=5, directory=tempfile.mkdtemp())
    >>> result = experiment.run()
    >>> result.status, result.counts
    ('DONE', {'SUCCEEDED': 5})
    """

    def __init__(
        self,
        trial: Callable[[dict[str, Any]], Any] | str,
        search_space: Mapping[str, Any],
        *,
        platform: str | None = None,
        directory: str | Path | None = None,
        experiment_id: str | None = None,
        **config: Any,
    ) -> None:
        from .manager.config import ConfigError, ExperimentConfig, check_plugins

        data = {"search_space": dict(search_space), **config}
        if platform is not None:
            data.setdefault("training_service", {"platform": platform})
        self._function = None if isinstance(trial, str) else trial
        if isinstance(trial, str):
            data["trial_command"] = trial
        self.config = ExperimentConfig.from_dict(data, needs_command=isinstance(trial, str))
        if problems := check_plugins(self.config):
            raise ConfigError(problems)
        self._directory = Path(directory) if directory is not None else None
        self._id = experiment_id

    def run(self) -> ExperimentResult:
        """Run the search to its end; Ctrl-C stops it and keeps what there is.

        May be called where an event loop runs already (a notebook). Raises `FolderError`, `ExecutorError` or
        `StoreError` where nothing can run.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._run()
        with concurrent.futures.ThreadPoolExecutor(1) as aside:
            return aside.submit(self._run).result()

    def _run(self) -> ExperimentResult:
        from .manager.experiments import create_experiment

        manager = create_experiment(
            self.config, directory=self._directory, experiment_id=self._id, function=self._function
        )
        try:
            asyncio.run(_watched(manager))
            return _result(manager)
        finally:
            manager.store.close()
            manager.folder.disown()


async def _watched(manager: Any) -> None:
    with _interrupts_stop(manager):
        await manager.run()


@contextmanager
def _interrupts_stop(manager: Any) -> Iterator[None]:
    """Let the first Ctrl-C stop the experiment; a second one interrupts as usual."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        manager.stop("interrupted")

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _result(manager: Any) -> ExperimentResult:
    row = manager.store.experiment()
    runner = manager.runner
    front = [] if runner is None else [_best(trial, runner.objectives) for trial in runner.best.front]
    several = len(manager.config.objectives) > 1
    return ExperimentResult(
        row.id,
        row.status,
        manager.folder.path,
        manager.store.counts(),
        front if several else next(iter(front), None),
        row.reason,
    )


def _best(trial: Any, objectives: Any) -> BestTrial:
    import json

    values = {objective.name: value for objective, value in zip(objectives, trial.values, strict=True)}
    value = values if len(values) > 1 else next(iter(values.values()))
    return BestTrial(trial.trial_id, trial.sequence_id, value, json.loads(trial.record)["parameters"])
