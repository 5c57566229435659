"""Making, resuming and viewing experiments: from a configuration or a folder to a `Manager`."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from ..config import ConfigError, ExperimentConfig, Finding, LocalConfig, RayConfig, tracker_classes
from ..executors import TrialExecutor
from ..protocol import Json, dumps, loading
from ..runner import (
    DataImported,
    Event,
    ExperimentStatus,
    RetryCancelledRequested,
    RetryFailedRequested,
    StopRequested,
    TrialRunner,
    TrialStatus,
    added_trial,
    recorded,
)
from ..search_space import SearchSpace, SearchSpaceError
from ..store import ExperimentFolder, FolderError, Store, default_directory, steady_clock
from ..trial_agent import other_compiler, pickled, write_whole
from . import hooks as _hooks
from .code_snapshot import take_snapshot
from .function_digest import function_files
from .hooks import Callback, Hooks, Stopper
from .manager import FirstEvents, Manager
from .manager_snapshot import ManagerSnapshot
from .run_settings import code_directory_of, names_of_objectives, new_store

if TYPE_CHECKING:
    from .warm_start import WarmStart

BY_USER = "stopped by the user"


def create_experiment(
    config: ExperimentConfig,
    *,
    directory: Path | None = None,
    experiment_id: str | None = None,
    source: Path | None = None,
    function: Callable[..., object] | None = None,
    callbacks: Iterable[Callback] = (),
    stopper: Stopper | None = None,
    first_events: FirstEvents | None = None,
    executor: TrialExecutor | None = None,
    clock: Callable[[], float] | None = None,
    is_kept: bool = True,
) -> Manager:
    """Make the folder and the store of a new experiment; return its manager, which does not run yet.

    `source` is the file the configuration came from, kept in the folder; `function` the trial if it is a function
    or a class; a `stopper` is kept there, too. If it is not to be kept, verbs do not find it by its id alone.
    Raises `FolderError` or `StoreError`, and `ConfigError` for a warm start that cannot be read or a
    tracker that cannot be made.
    """
    clock = clock or steady_clock()
    callbacks = [*callbacks, *_trackers_of(config)]
    directory = directory or directory_of(config)
    warm_start = _warm_start_of(config, directory)
    folder = ExperimentFolder.create(directory, experiment_id, is_kept=is_kept)
    try:
        if source is not None:
            (folder.path / "experiment.yml").write_bytes(source.read_bytes())
        if function is not None:
            _write_function(folder, function, config)
        if config.trial_code == "snapshot":
            take_snapshot(config.trial_code_directory, folder.code_snapshot)
        if stopper is not None:
            folder.stopper_file.write_bytes(pickled(stopper))
        if config.durability == "power":
            folder.sync()
        now = clock()
        # As if users had added these trials: they are committed, and a resumed manager does not add them again.
        accepted = [recorded(event) for event in _first_events(config, warm_start, now)]
        store, config = new_store(folder, config, now, ManagerSnapshot(accepted=accepted))
    except BaseException:
        folder.remove()
        raise
    executor = executor or executor_for(config)
    hooks = Hooks(callbacks=callbacks, stopper=stopper)
    manager = Manager(folder, config, store, executor, clock, hooks=hooks, first_events=first_events)
    if warm_start is not None:
        manager.notes += warm_start.notes
        manager.start_warnings = warm_start.warnings
    return manager


def resume_experiment(
    folder: ExperimentFolder,
    *,
    function: Callable[..., object] | None = None,
    callbacks: Iterable[Callback] = (),
    stopper: Stopper | None = None,
    first_events: FirstEvents | None = None,
    ending: bool = False,
    retry_cancelled: bool = True,
    executor: TrialExecutor | None = None,
    clock: Callable[[], float] | None = None,
) -> Manager:
    """Return the manager of an experiment that does not run now; it continues where its store says it was.

    A `function` or a `stopper` replaces the one it had. With `ending` it takes in what its trials reported, and ends
    them; nothing of the folder is imported, unpickled or started, for it may be a stranger's. With `retry_cancelled`
    the trials that its end cancelled run again, except those with a budget, and so do those that failed if it ended
    because the first trials failed alike. Raises `FolderError` if it runs or its stopper cannot be loaded, `StoreError`
    if its database cannot be used, `ConfigError` for a tracker that cannot be made; with `ending` such a tracker is
    only noted, for the trials must end.
    """
    clock = clock or steady_clock()
    folder.own()
    try:
        store = Store.open(folder.database)
        stored = store.experiment().config
        config = ExperimentConfig.from_canonical(stored)
        if executor is None and not ending:
            folder.refuse_search(stored)
        if not ending:
            folder.link()  # it may have been moved
        store.objectives = names_of_objectives(config)
        if function is not None:
            _write_function(folder, function, config)
        elif not ending:
            _check_function(folder)
        if stopper is None and not ending:
            stopper = _stopper_of(folder)
        trackers, notes = _trackers_and_notes(config, ending=ending)
        if not ending and executor is None:
            notes = [*notes, *code_notes(folder, config)]
    except BaseException:
        folder.disown()
        raise
    hooks = Hooks(callbacks=[*callbacks, *trackers], stopper=stopper)
    first = _stop if ending and first_events is None else first_events
    if retry_cancelled and not ending:
        first = partial(_after_retries, first)
    return Manager(
        folder,
        config,
        store,
        executor or executor_for(config, ending=ending),
        clock,
        hooks=hooks,
        first_events=first,
        notes=notes,
        is_ending=ending,
    )


def _write_function(
    folder: ExperimentFolder, function: Callable[..., object], config: ExperimentConfig
) -> None:
    """Write the pickled function, and what its file was: agents read these when they start."""
    files = function_files(function, config.trial_code_directory)
    write_whole(folder.function_file, pickled(function, sys.argv))
    write_whole(folder.function_files, dumps(files).encode())


def _check_function(folder: ExperimentFolder) -> None:
    """Raise `FolderError` for a function that this Python cannot run."""
    _refuse_other_python(folder.function_file, "function", "Experiment(function, ..., resume_if_exists=True)")


def _refuse_other_python(file: Path, what: str, remedy: str) -> None:
    """Raise `FolderError` if another version of Python compiled the code in a pickled file."""
    version = other_compiler(file.read_bytes()) if file.exists() else ""
    if version:
        raise FolderError(
            f"the {what} in {file} was compiled by Python {version}, and this is Python"
            f" {sys.version_info[0]}.{sys.version_info[1]}: resume with Python {version}, or from Python with {remedy}"
        )


def _trackers_of(config: ExperimentConfig) -> Sequence[Callback]:
    """Return the trackers that a configuration names; raise `ConfigError`."""
    classes = tracker_classes(config)
    return [classes[name](**options) for name, options in config.trackers.items()]


def _trackers_and_notes(
    config: ExperimentConfig, *, ending: bool
) -> tuple[Sequence[Callback], Sequence[str]]:
    """Return the trackers; with `ending`, the note of what is wrong in place of one that cannot be made."""
    try:
        return _trackers_of(config), ()
    except ConfigError as error:
        if not ending:
            raise
        return (), [f"runs of trackers stay open: {error}"]


def code_notes(folder: ExperimentFolder, config: ExperimentConfig) -> Sequence[str]:
    """Return the note that the code is not what the last trials of an experiment ran, if so."""
    from ..store.reading import ExperimentView, changed_files
    from ..telling import changed_since_text

    with ExperimentView(folder) as view:
        changed = changed_files(view.code_versions(), code_directory_of(config, folder))
    return [changed_since_text(changed)] if changed else []


def _warm_start_of(config: ExperimentConfig, directory: Path) -> WarmStart | None:
    """Return what the earlier searches of a configuration offer; raise `ConfigError`."""
    if not config.warm_start:
        return None
    from .warm_start import warm_start_of  # most experiments have none: they start without what it imports

    return warm_start_of(config, directory)


def _first_events(config: ExperimentConfig, warm_start: WarmStart | None, now: float) -> list[Event]:
    """Return the events that hand over the results of earlier searches, and that add the trials to begin with."""
    own = [added_trial(point.parameters, now, source=point.source) for point in config.starting_points]
    if warm_start is None:
        return [*own]
    results = [DataImported(now, dumps(warm_start.results))] if warm_start.results else []
    return [*results, *own, *(added_trial(point, now, source="warm_start") for point in warm_start.points)]


def _stop(_runner: TrialRunner, now: float) -> tuple[Event, ...]:
    return (StopRequested(now, BY_USER, cause="user: stop"),)


def _after_retries(first_events: FirstEvents | None, runner: TrialRunner, now: float) -> tuple[Event, ...]:
    """Return the requests to run trials again, cancelled ones and those that failed alike; then the first events."""
    again = list[Event]()
    if runner.counts[TrialStatus.SYS_CANCELED]:
        again.append(RetryCancelledRequested(now, cause="user: resume"))
    if runner.has_failed_alike:  # what all had in common is mended now
        again.append(RetryFailedRequested(now, from_checkpoint=False, cause="user: resume"))
    return (*again, *(first_events(runner, now) if first_events else ()))


def experiment_config(folder: ExperimentFolder, *, to_change: bool = True) -> ExperimentConfig:
    """Return the configuration of an experiment, whether it runs or not; raise `StoreError` if there is none.

    Raise `FolderError` if the experiment is to change and was imported from NNI, whose config need not be complete.
    """
    store = Store.view(folder.database)
    try:
        row = store.experiment()
    finally:
        store.close()
    if to_change and row.status == ExperimentStatus.VIEWED:
        raise FolderError(
            f"experiment {folder.experiment_id} is VIEWED, and nothing continues it; to continue its"
            f" search: warm_start: [{folder.path}] in a config"
        )
    return ExperimentConfig.from_canonical(row.config)


def reasons_outside(config: ExperimentConfig, several: Sequence[Mapping[str, Json]]) -> list[str]:
    """Return why each of several parameter sets is outside the search space; empty texts for those inside."""
    try:
        space = SearchSpace.parse(config.search_space or {})
    except SearchSpaceError:
        return [""] * len(several)  # only the user's tuner reads this search space
    if (config.tuner.name or "").lower().removesuffix("tuner") == "batch":
        return [""] * len(several)  # its options are whole points
    return ["; ".join(map(str, space.validate(parameters))) for parameters in several]


def _stopper_of(folder: ExperimentFolder) -> Stopper | None:
    """Return the stopper that an experiment was made with; its code may no longer be importable."""
    if not folder.stopper_file.exists():
        return None
    _refuse_other_python(folder.stopper_file, "stopper", "Experiment.restore(..., stop=...)")
    try:
        with folder.stopper_file.open("rb") as file, loading("stopper"):
            return _StopperLoader(file).load()
    except Exception as error:
        raise FolderError(
            f"the stopper in {folder.stopper_file} cannot be loaded ({type(error).__name__}: {error}): "
            "resume from Python with Experiment.restore(..., stop=...)"
        ) from error


class _StopperLoader(pickle.Unpickler):
    """Finds Pitchpipe's stoppers by their names alone: earlier versions may have had them in another module."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        try:
            return super().find_class(module_name, global_name)
        except (ImportError, AttributeError):
            is_ours = module_name.partition(".")[0] == __name__.partition(".")[0]
            if not (is_ours and hasattr(_hooks, global_name)):
                raise
            return getattr(_hooks, global_name)


def warm_start_faults(config: ExperimentConfig, directory: Path | None = None) -> list[Finding]:
    """Return which sources of a warm start cannot be read; other fields of the configuration may be wrong."""
    if not config.warm_start:
        return []
    from .warm_start import unreadable_sources

    return unreadable_sources(config, directory or directory_of(config))


def warm_start_notes(
    config: ExperimentConfig, directory: Path | None = None
) -> tuple[Sequence[str], Sequence[str]]:
    """Return what the warm start of a configuration would use and leave out, and warnings; raise `ConfigError`."""
    warm_start = _warm_start_of(config, directory or directory_of(config))
    return ((), ()) if warm_start is None else (warm_start.notes, warm_start.warnings)


def executor_for(config: ExperimentConfig, *, ending: bool = False) -> TrialExecutor:
    """Return the executor that the configuration's training service names, or one that only ends what runs there."""
    service = config.training_service
    if isinstance(service, LocalConfig):
        from ..executors.local import LocalTrialExecutor

        return LocalTrialExecutor(
            service.gpu_indices, service.max_trial_number_per_gpu, service.use_active_gpu, service.resources
        )
    if not isinstance(service, RayConfig):
        assert_never(service)
    from ..executors.ray import RayTrialExecutor

    return RayTrialExecutor(
        service.address,
        idle_timeout=service.idle_timeout,
        runtime_env=None if ending else service.runtime_env,  # making it runs what it names
        reconnect_timeout=service.reconnect_timeout,
    )


def directory_of(config: ExperimentConfig) -> Path:
    """Return where experiments are kept: the directory that the config names, else the default."""
    if "experiment_working_directory" in config.model_fields_set:
        return config.experiment_working_directory
    return default_directory()
