"""Changing an experiment from another process: what verbs, the HTTP API and the pages call.

A running experiment is changed through its manager (`operations.py`), any other one in its store (limits only).
What takes time (whether the tuner takes a new search space) is checked here, not in the manager.
All functions raise `ControlError`, whose `kind` says what sort of refusal it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...config import ExperimentConfig, check_plugins
from ...protocol import Json, Parameters, dumps
from ...runner import ExperimentStatus
from ...search_space import with_constants
from ...store import ExperimentFolder, FolderError, Store
from ..experiment_factory import BY_USER, experiment_config, reasons_outside
from .connection import ControlError, ControlRequest, MeasuredResult, ask_manager
from .extension import (
    CurrentLimits,
    Extension,
    ExtensionError,
    current_limits,
    extend_experiment,
    options_to_extend,
    owned_store,
)
from .operations import TrialIds, changed_config, checked_import

_PATIENCE = 10.0
# The size of one request: the manager's loop has other things to do.
_MOST_CHARACTERS = 48_000
_LONGEST_NAME = 200


def change_experiment(
    folder: ExperimentFolder, changes: Mapping[str, Json], timeout: float = _PATIENCE
) -> CurrentLimits:
    """Change `max_trial_number`, `max_experiment_duration`, `trial_concurrency` or the `search_space`.

    None lifts a bound; durations are seconds, or text such as "2h". Return the limits as they are now. The limits of
    an experiment that does not run are changed for its next run.
    """
    config = changed_config(_config(folder), changes)
    if folder.manager() is None:
        _extend(folder, changes, config)
    else:
        # This runs the tuner's code, as the running experiment does already.
        if "search_space" in changes and (problems := check_plugins(config)):
            raise ControlError("; ".join(map(str, problems)), "invalid")
        ask_manager(folder.path, {"op": "update", "changes": dict(changes)}, timeout)
    return current_limits(config)


def add_trial(folder: ExperimentFolder, parameters: Parameters, timeout: float = _PATIENCE) -> TrialIds:
    """Run a trial with these parameters."""
    return _ask(folder, {"op": "add", "parameters": parameters}, timeout)


def add_trials(
    folder: ExperimentFolder, several: Sequence[Parameters], timeout: float = _PATIENCE
) -> list[TrialIds]:
    """Run several trials, all or none."""
    return _ask(folder, {"op": "add", "parameters": [*several]}, timeout)["trials"]


def rerun_trial(folder: ExperimentFolder, trial: str | int, timeout: float = _PATIENCE) -> TrialIds:
    """Run a new trial with the parameters of another one."""
    return _ask(folder, {"op": "rerun", "trial": trial}, timeout)


def kill_trial(folder: ExperimentFolder, trial: str | int, timeout: float = _PATIENCE) -> TrialIds:
    """End one trial; the experiment continues."""
    return _ask(folder, {"op": "kill", "trial": trial}, timeout)


def import_results(
    folder: ExperimentFolder, results: Sequence[Json], timeout: float = _PATIENCE
) -> tuple[int, list[str]]:
    """Give the tuner results measured elsewhere, each `{"parameter": {...}, "value": NUMBER}`.

    All are checked before the first is sent; those outside the search space are left out, unless the tuner is the
    user's. Return how many were sent, and why each of the others was not.
    """
    config = _config(folder)
    rows = checked_import(list(results), [objective.name for objective in config.objectives])
    left_out: list[str] = []
    if config.tuner.class_name is None:
        space = config.search_space or {}
        rows = [
            MeasuredResult(parameter=with_constants(space, row["parameter"]), value=row["value"])
            for row in rows
        ]
        reasons = reasons_outside(config, [row["parameter"] for row in rows])
        left_out = [f"results[{number}]: {why}" for number, why in enumerate(reasons) if why]
        rows = [row for row, why in zip(rows, reasons, strict=True) if not why]
    if not rows:
        raise ControlError(f"no result is in the search space: {left_out[0]}", "invalid")
    for portion in list(_portions(rows)):
        _ask(folder, {"op": "import", "data": portion}, timeout)
    return len(rows), left_out


def rename_experiment(folder: ExperimentFolder, name: str) -> None:
    """Give an experiment that does not run another name, of at most 200 characters; an empty one removes it."""
    if len(name) > _LONGEST_NAME:
        raise ControlError(f"a name has at most {_LONGEST_NAME} characters, not {len(name)}", "invalid")
    try:
        with owned_store(folder) as store:
            store.set_name(name or None)
    except FolderError as error:
        raise ControlError(str(error)) from error


def stop_experiment(folder: ExperimentFolder, reason: str = BY_USER, timeout: float = _PATIENCE) -> None:
    """End the experiment without waiting for its end: trials get their grace, and results are kept."""
    _ask(folder, {"op": "stop", "reason": reason}, timeout)


def _config(folder: ExperimentFolder) -> ExperimentConfig:
    try:
        return experiment_config(folder)
    except FolderError as error:
        raise ControlError(str(error)) from error


def _ask(folder: ExperimentFolder, request: ControlRequest, timeout: float) -> Json:
    if folder.manager() is None:
        raise ControlError(f"experiment {folder.experiment_id} does not run: {_how_to_run(folder)}")
    answer = ask_manager(folder.path, request, timeout)
    return {name: value for name, value in answer.items() if name != "ok"}


def _how_to_run(folder: ExperimentFolder) -> str:
    """Say how to continue an experiment that does not run."""
    store = Store.view(folder.database)
    try:
        row = store.experiment()
    finally:
        store.close()
    status, resume = row.status, f"pitchpipe resume {folder.experiment_id}"
    if status == ExperimentStatus.VIEWED:
        return "it is VIEWED, and nothing continues it"
    if folder.is_search(row.config):
        return "only the program that asks and tells continues it"
    if status == ExperimentStatus.DONE:
        return f"it is DONE, and {resume} {options_to_extend(folder)} extends it"
    return f"{resume} continues it"


def _extend(folder: ExperimentFolder, changes: Mapping[str, Json], config: ExperimentConfig) -> None:
    if "search_space" in changes:
        raise ControlError(
            f"experiment {folder.experiment_id} does not run, and its tuner takes a search space only while it does: "
            f"{_how_to_run(folder)}"
        )
    if lifted := [name for name in changes if changes[name] is None]:
        raise ControlError(f"{', '.join(lifted)} can be lifted only while the experiment runs: give a number")
    try:
        changed = Extension(**{name: getattr(config, name) for name in changes})
        extend_experiment(folder, changed, to_continue=False)
    except (ExtensionError, FolderError) as error:
        raise ControlError(str(error)) from error


def _portions(rows: Sequence[MeasuredResult]) -> Iterator[list[MeasuredResult]]:
    """Yield the rows in portions of a bounded size; raise `ControlError` for a row that is larger alone."""
    portion, size = list[MeasuredResult](), 0
    for number, row in enumerate(rows):
        length = len(dumps(row))
        if length > _MOST_CHARACTERS:
            raise ControlError(f"results[{number}] is longer than {_MOST_CHARACTERS} characters", "invalid")
        if portion and size + length > _MOST_CHARACTERS:
            yield portion
            portion, size = [], 0
        portion.append(row)
        size += length
    if portion:
        yield portion
