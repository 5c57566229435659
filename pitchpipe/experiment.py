"""`Experiment`: the tuner from Python, for functions, classes and commands, without a YAML file."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from .keywords import ExperimentOptions, Point, completed, given_objectives
from .plots import Plots
from .progress import forget_closed_stderr, shown_pages, shown_progress
from .protocol import Direction, Json, refuse_while_loading
from .registry import registered, shipped
from .results import BestTrial, ExperimentResult, Interrupted, result_of, warn_if_none_succeeded
from .sdk import Trainable
from .signals import DeferredSignals, is_in_event_loop

if TYPE_CHECKING:
    from .config import ExperimentConfig
    from .manager import Manager
    from .manager.control import Extension, RunningManager
    from .runner import Event, TrialRunner
    from .store import ExperimentFolder

__all__ = ["BestTrial", "Experiment", "ExperimentResult"]

_log = logging.getLogger(__name__)
# Seconds that an experiment may take, after the grace period of its trials, to end with its program.
_STOP_PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class _Running:
    """A manager that runs, with the loop that runs it and the thread of the loop."""

    manager: Manager
    host: RunningManager
    loop: asyncio.AbstractEventLoop
    thread: int


class Experiment(Plots):
    """One search for good parameters.

    `trial` is a function of a dict of parameters that returns or reports its final result, a class derived from
    `Trainable`, the name of either in `register_trainable`, or a command line. `callbacks` are notified of what
    happens. `stop` is a stopper, a function of a trial's id and a result, or a dict of numbers to be reached.
    `directory` contains the experiment's folder, whose name is `experiment_id`. With `resume_if_exists`, a program that
    is started again continues the experiment that it finds there, with the trial that is given now; its configuration
    must be the same, except for limits: higher ones extend it. All other keyword arguments are fields of
    experiment.yml, see docs/reference/config.md; `platform` is short for `training_service={"platform": ...}`, and
    `direction` and `metric` are short for a single one of the `objectives`. Raises `ConfigError` with all problems of
    the configuration.

    >>> import tempfile
    >>> def square(parameters):
    ...     return (parameters["x"] - 1) ** 2
    >>> experiment = Experiment(square, {"x": {"_type": "uniform", "_value": [-5, 5]}}, platform="local",
    ...                         tuner={"name": "Random"}, max_trial_number=5, directory=tempfile.mkdtemp())
    >>> result = experiment.run()
    >>> result.status, result.counts
    ('DONE', {'SUCCEEDED': 5})
    """

    @completed(ExperimentOptions)
    def __init__(
        self,
        trial: Any,
        search_space: Mapping[str, Json],
        *,
        platform: str | None = None,
        direction: Direction | None = None,
        metric: str = "default",
        directory: str | Path | None = None,
        experiment_id: str | None = None,
        resume_if_exists: bool = False,
        callbacks: Iterable[Any] = (),
        stop: Any = None,
        **config: Unpack[ExperimentOptions],
    ) -> None:
        from .config import ExperimentConfig, with_plugins_checked
        from .manager.hooks import as_stopper
        from .telling import escaped

        forget_closed_stderr()
        function = _function_of(trial)
        data: dict[str, object] = {"search_space": dict(search_space), **config}
        if (objectives := given_objectives(direction, metric, config.get("objectives"))) is not None:
            data["objectives"] = objectives
        if platform is not None:
            data.setdefault("training_service", {"platform": platform})
        if function is None:
            data["trial_command"] = trial
        given = ExperimentConfig.from_dict(data, needs_command=function is None)
        self.config = with_plugins_checked(given)
        for warning in (self.config.direction_note, self.config.assessor_note, *self.config.plugin_warnings):
            if warning:
                _log.warning("%s", escaped(warning))
        if resume_if_exists and experiment_id is None:
            raise ValueError(
                "resume_if_exists needs an experiment_id, by which the experiment is found again"
            )
        make = partial(
            _continued if resume_if_exists else _created,
            self.config,
            directory=None if directory is None else Path(directory),
            experiment_id=experiment_id,
            function=function,
            callbacks=tuple(callbacks),
            stopper=as_stopper(stop),
            first_events=self._first_events,
        )
        self._begin(make)

    @classmethod
    def restore(
        cls,
        path: str | Path,
        *,
        resume_unfinished: bool = True,
        resume_errored: bool = False,
        restart_errored: bool = False,
        callbacks: Iterable[Any] = (),
        stop: Any = None,
        **limits: Any,
    ) -> Experiment:
        """Return the experiment in a folder, with its trial, configuration and stopper; `run` continues it.

        Trials that had not ended, or that the end of the experiment cancelled, continue; with `resume_unfinished=False`
        they end as cancelled. Failed trials stay failed, unless `resume_errored` retries them from their last
        checkpoint or `restart_errored` from the beginning. The tuner receives results of retried trials as imported
        results. `stop` replaces the stopper. `limits` may have a new `max_trial_number`, `max_experiment_duration`
        (seconds) and `trial_concurrency`, which also extend an experiment that is DONE. Raises `StoreError` if there
        is no experiment in the folder, `FolderError` for one of NNI, `ValueError` for both kinds of retry at once;
        `run` raises `ExtensionError` for invalid limits, and `ConfigError` if this machine cannot start the trials.
        """
        from .manager import experiment_config
        from .manager.control import Extension
        from .manager.hooks import as_stopper
        from .store import ExperimentFolder, absolute

        forget_closed_stderr()
        if resume_errored and restart_errored:
            raise ValueError("resume_errored and restart_errored exclude each other")
        folder = ExperimentFolder(absolute(path))
        experiment = cls.__new__(cls)
        experiment.config = experiment_config(folder)
        make = partial(
            _resumed,
            folder,
            Extension(**limits),
            callbacks=tuple(callbacks),
            stopper=as_stopper(stop),
            first_events=experiment._first_events,
            retry_cancelled=resume_unfinished,
        )
        experiment._begin(make)
        experiment._retry_failed = resume_errored if resume_errored or restart_errored else None
        experiment._resume_unfinished = resume_unfinished
        return experiment

    def _begin(self, make: Callable[[], Manager]) -> None:
        self._make = make
        self._retry_failed: bool | None = None
        self._resume_unfinished = True
        self._lock = threading.RLock()  # a signal may come while this thread holds it
        self._manager: Manager | None = None
        self._folder: Path | None = None
        self._running: _Running | None = None
        self._stop_reason: str | None = None
        self._added: list[Point] = []

    def create(self) -> Path:
        """Make the experiment's folder, or acquire the restored one, before `run` does; return its path."""
        return self._prepared().folder.path

    def _prepared(self) -> Manager:
        """Return the manager, which is made when it is first needed."""
        refuse_while_loading("trial", "plug-in", "stopper")
        with self._lock:
            if self._manager is None:
                self._manager = self._make()
                self._folder = self._manager.folder.path
            return self._manager

    def run(self, *, progress: bool = True, ui: bool = False) -> ExperimentResult:
        """Run the search to its end, or until another thread calls `stop`; return the results.

        With `progress`, a terminal or a notebook shows how far it is; elsewhere stderr gets a line now and then. With
        `ui`, web pages show it while it runs.
        Ctrl-C also stops it, and raises `Interrupted`, a KeyboardInterrupt with the results so far as its `result`;
        `restore` continues it. May be called in a running event loop (a notebook). Raises `FolderError`,
        `ExecutorError` or `StoreError` if nothing can run, and before anything is made, `ConfigError` if this machine
        cannot start the trials, and `MissingExtraError` if there are no pages to show.
        """
        run = partial(self._run, progress=progress, ui=ui)
        with DeferredSignals(self.stop) as signals:
            if is_in_event_loop():
                with concurrent.futures.ThreadPoolExecutor(1) as aside:
                    result = aside.submit(run).result()
            else:
                result = run()
        if signals.is_interrupted:
            how = f'Experiment.restore("{result.folder}").run() continues it'
            raise Interrupted(f"the experiment in {result.folder} was stopped: {how}", result)
        warn_if_none_succeeded(result)
        return result

    def stop(self, reason: str = "stopped by the user") -> None:
        """End the search, from any thread, without waiting. Trials get their grace period, and then `run` returns."""
        with self._lock:
            self._stop_reason = reason
            if self._running is not None:
                self._running.loop.call_soon_threadsafe(self._running.host.stop, reason)

    def add_trial(self, parameters: Point) -> None:
        """Try your own parameters, from any thread, before or while the search runs.

        The trial starts after those that are waiting. The tuner receives its result only if it accepts customised
        trials. Raises `ValueError` for parameters outside the search space, and if no further trial is allowed.
        """
        from .manager import reasons_outside

        if reasons := reasons_outside(self.config, [parameters])[0]:
            raise ValueError(f"not in the search space: {reasons}")
        added: concurrent.futures.Future[None] = concurrent.futures.Future()
        with self._lock:
            running = self._running
            if running is None:
                if self._manager is None and self._folder is not None:
                    raise ValueError("no trial can be added: the experiment no longer runs")
                self._added.append(dict(parameters))
                return
            add = partial(running.manager.add_trial, parameters)
            if threading.get_ident() == running.thread:  # a callback calls
                _do(added, add)
            else:
                running.loop.call_soon_threadsafe(_do, added, add)
        added.result()

    def results(self) -> ExperimentResult:
        """Return the results so far, from any thread, while the experiment runs or afterwards."""
        return result_of(self._folder or self.create())

    def _folder_to_plot(self) -> Path:
        return self._folder or self.create()

    def _repr_html_(self) -> str:
        if self._folder is None:
            return f"<p>an experiment that has not begun: {escape(self.config.goal)}</p>"
        return self.results()._repr_html_()

    def _run(self, *, progress: bool, ui: bool) -> ExperimentResult:
        if ui:
            from .server import require_server

            require_server(pages=True)
        _check_startable(self.config)  # not in `create`: results can be read without the script
        manager = self._prepared()
        try:
            with (
                _ended_with_the_program(self.stop, manager.config.kill_grace),
                shown_pages(manager.folder, is_wanted=ui),
                shown_progress(manager, is_wanted=progress),
            ):
                asyncio.run(self._watched(manager))
            return result_of(manager.folder.path)
        finally:
            with self._lock:
                self._manager, self._stop_reason = None, None
            manager.store.close()
            manager.folder.disown()

    async def _watched(self, manager: Manager) -> None:
        """Run the manager with its control socket."""
        from .manager.control import RunningManager

        async with RunningManager(manager) as host:
            with self._lock:
                self._running = _Running(manager, host, asyncio.get_running_loop(), threading.get_ident())
                if self._stop_reason is not None:
                    host.stop(self._stop_reason)
            try:
                await host.wait()
            finally:
                with self._lock:
                    self._running = None
                await asyncio.sleep(0)  # calls of other threads that were scheduled before return now

    def _first_events(self, runner: TrialRunner, now: float) -> list[Event]:
        """Return the requests of `restore` and of earlier calls of `add_trial`, given the state of the experiment."""
        from .runner import RetryFailedRequested, TrialKillRequested, added_trial

        events: list[Event] = []
        if not self._resume_unfinished:
            events += [TrialKillRequested(now, trial_id) for trial_id in runner.live]
        if self._retry_failed is not None:
            events.append(RetryFailedRequested(now, self._retry_failed))
        with self._lock:
            added, self._added = self._added, []
        return events + [added_trial(parameters, now) for parameters in added]


@contextmanager
def _ended_with_the_program(stop: Callable[[str], None], grace: float) -> Iterator[None]:
    """If the program ends while a daemon thread is in the block, end the experiment first."""
    pid, over = os.getpid(), threading.Event()

    def end() -> None:
        if os.getpid() == pid:  # not in a forked child
            stop("the program ended")
            over.wait(grace + _STOP_PATIENCE)

    atexit.register(end)
    try:
        yield
    finally:
        over.set()
        atexit.unregister(end)


def _created(config: ExperimentConfig, **more: Any) -> Manager:
    from .manager import create_experiment
    from .store import FolderExistsError

    _check_startable(config)
    try:
        return create_experiment(config, **more)
    except FolderExistsError as error:
        raise FolderExistsError(
            f"there is a folder already for experiment_id={more['experiment_id']!r}: resume_if_exists=True continues an"
            " experiment in it; or choose another experiment_id or directory"
        ) from error


def _continued(
    config: ExperimentConfig, *, directory: Path | None, experiment_id: str, **more: Any
) -> Manager:
    from .manager.control import continue_experiment

    manager = continue_experiment(config, experiment_id, directory=directory, **more)
    return manager or _created(config, directory=directory, experiment_id=experiment_id, **more)


def _resumed(folder: ExperimentFolder, extension: Extension, **more: Any) -> Manager:
    from .manager import resume_experiment
    from .manager.control import extend_experiment

    if extension.changes():
        extend_experiment(folder, extension)
    return resume_experiment(folder, **more)


def _check_startable(config: ExperimentConfig) -> None:
    """Raise `ConfigError` if this machine cannot start the trials of an experiment."""
    from .config import ConfigError
    from .manager import faults_at_start

    if faults := faults_at_start(config):
        raise ConfigError.of(faults)


def _function_of(trial: Any) -> Any:
    """Return the function or class of a trial, None for a command; raise `TypeError` for anything else."""
    if isinstance(trial, str):
        if not registered.has_trainable(trial):
            return None
        trial = registered.trainable(trial)
    if isinstance(trial, type) and not issubclass(trial, Trainable):
        raise TypeError(f"{trial.__name__} is not derived from pitchpipe.Trainable")
    if not callable(trial):
        raise TypeError(f"{trial!r} is not a function, a Trainable class, or a command line")
    return shipped(trial)


def _do(future: concurrent.futures.Future[None], action: Callable[[], None]) -> None:
    """Call `action` on the loop's thread, and pass its result to the thread that waits."""
    try:
        future.set_result(action())
    except Exception as error:  # noqa: BLE001  (raised in the thread that waits)
        future.set_exception(error)
