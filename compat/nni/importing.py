"""Imports an experiment that NNI 1 to 3 ran (its `db/nni.sqlite`) as a VIEWED one, which can only be read."""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from ...config import ConfigError, ExperimentConfig
from ...protocol import Config, Json, JsonObject, MetricError, metric_value
from ...runner import Changes, ExperimentStatus, FailureKind, MetricRow, Trial, TrialStatus
from ...search_space import check
from ...store import ExperimentFolder, ExperimentRow, FolderError, Store, StoreTick
from .config_forms import todays_space
from .results import (
    OldEvent,
    OldExperiment,
    direction_of,
    find_results,
    read_experiment,
    results_of,
    section_of,
)

_STATUSES = frozenset(TrialStatus.__members__) - {"PAUSED"}
_LISTED = 10
_UNFINISHED = "NNI's manager ended before it"
_HIGHEST = "; its config names no direction, and NNI ranks the highest result first"


def import_experiment(path: Path, directory: Path, experiment_id: str | None = None) -> ExperimentFolder:
    """Import the NNI experiment in `path`, which does not change, and return its new folder in `directory`.

    It keeps its id unless `experiment_id` is given. Results that cannot be read are left out and listed in the reason
    of the experiment's status. Raise `FolderError` if `path` has no NNI experiment, if nothing in it can be read, or if
    the id is taken.
    """
    try:
        database = find_results(path)
    except OSError as error:
        raise FolderError(f"{path} cannot be entered: {error.strerror}") from error
    if database is None:
        raise FolderError(f"{path} has no db/nni.sqlite: it is not the folder of an experiment of NNI")
    try:
        old = read_experiment(database)
        config = _config(old)
        trials = list(_trials(old))
    except (sqlite3.Error, KeyError, IndexError) as error:  # a table or a column is missing
        raise FolderError(f"{path} cannot be read as an experiment of NNI: {error}") from error
    folder = ExperimentFolder.create(directory, experiment_id or old.id or path.name)
    try:
        _write(folder, config, old, trials, path)
    except BaseException:
        folder.remove()
        raise
    folder.disown()
    return folder


def _config(old: OldExperiment) -> ExperimentConfig:
    """Return what can be shown of a config of any version; fields and parameters that cannot are noted."""
    fields: JsonObject = {
        "experiment_name": old.config.get("experimentName"),
        "trial_command": old.config.get("trialCommand") or "NNI's config has none",
        "trial_concurrency": old.config.get("trialConcurrency"),
        "max_trial_number": old.config.get("maxTrialNumber") or old.config.get("maxTrialNum"),
        "objectives": [{"name": "default", "direction": direction_of(old.config) or "maximize"}],
        "training_service": {"platform": "local"},
        "search_space": _space(old),
    }
    given = {name: value for name, value in fields.items() if value is not None}
    while True:
        try:
            return ExperimentConfig.from_dict(given)
        except ConfigError as error:
            wrong = {str(problem.path[0]): problem for problem in error.problems if problem.path}
            if not wrong.keys() & given.keys():
                raise
            for name in wrong.keys() & given.keys():
                old.notes.append(str(wrong[name]))
                given[name] = {"search_space": {}, "trial_command": "NNI's config has none"}.get(name)
            given = {name: value for name, value in given.items() if value is not None}


def _space(old: OldExperiment) -> JsonObject:
    """Return the search space without the parameters that cannot be read, which are noted."""
    space = old.config.get("searchSpace") or {}
    try:
        space = json.loads(space) if isinstance(space, str) else deepcopy(space)
    except ValueError as error:
        old.notes.append(f"the search space: {error}")
        return {}
    if not isinstance(space, dict):
        old.notes.append("the search space: it is not an object")
        return {}
    space, _ = todays_space(space)
    while problems := check(space):
        group, name = _parameter(space, problems[0].path)
        old.notes.append(f"{name} in the search space: {problems[0]}")
        del group[name]
    return space


def _parameter(space: JsonObject, path: Sequence[Any]) -> tuple[JsonObject, str]:
    """Return the innermost parameter on a path of a search space, by the group that it is in and its name."""
    group, name = space, path[0]
    for depth in range(0, len(path) - 3, 3):
        option, inner = group[name]["_value"][path[depth + 2]], path[depth + 3]
        if not isinstance(option, dict) or inner == "_name" or inner not in option:
            break
        group, name = option, inner
    return group, name


def _stored_config(config: ExperimentConfig, nnis: Config) -> JsonObject:
    """Return the config as it is stored: with NNI's folder and plug-ins, which may no longer be there."""
    trial = section_of(nnis, "trial")
    stored = config.canonical()
    stored["trialCodeDirectory"] = str(nnis.get("trialCodeDirectory") or trial.get("codeDir") or "")
    for kind in ("tuner", "assessor"):
        section = section_of(nnis, kind)
        name = section.get("name") or section.get(f"builtin{kind.title()}Name") or section.get("className")
        if name:
            stored[kind] = {"name": str(name), "classArgs": section_of(section, "classArgs")}
    return stored


def _trials(old: OldExperiment) -> Iterator[tuple[Trial, list[MetricRow]]]:
    """Yield the trials in the order in which they began, with their results."""
    for number, (name, events) in enumerate(old.events.items()):
        record = old.records.get(name)
        moves = [event for event in events if event.name in _STATUSES]
        if record is None:
            continue
        if not moves:
            old.notes.append(f"trial {name}: none of its events is a status")
            continue
        number_of_parameters = json.loads(record).get("parameter_id")
        trial = Trial(
            trial_id=name,
            sequence_id=number,
            parameter_id=number_of_parameters if isinstance(number_of_parameters, int) else None,
            record=record,
            created=events[0].time,
            attempt=1,
        )
        _end(trial, moves)
        yield trial, list(_results(trial, old))


def _end(trial: Trial, moves: Sequence[OldEvent]) -> None:
    """Set status and times by the events; a trial that had not ended was cancelled."""
    trial.start_time = next((move.time for move in moves if move.name == "RUNNING"), trial.created)
    trial.end_time = moves[-1].time
    trial.status, trial.reason = TrialStatus(moves[-1].name), moves[-1].message
    if trial.status is TrialStatus.FAILED:
        trial.reason, trial.kind = trial.reason or "NNI keeps no reason", FailureKind.USER_ERROR
    if not trial.status.is_final:
        trial.status, trial.reason = TrialStatus.SYS_CANCELED, _UNFINISHED


def _results(trial: Trial, old: OldExperiment) -> Iterator[MetricRow]:
    """Yield the results of a trial, each number once, and give it its final result."""
    for kind, sequence, value, time in results_of(old, trial.trial_id, old.metrics.get(trial.trial_id, ())):
        text = json.dumps(value)
        if kind == "FINAL":
            trial.final, trial.finals, trial.values = text, 1, _values(value)
        else:
            trial.next_sequence = trial.next_unsent = max(trial.next_sequence, sequence + 1)
        yield MetricRow(trial, 1, kind, sequence, text, time)


def _values(value: Json) -> tuple[float] | None:
    try:
        number = metric_value(value)
    except MetricError:
        return None
    return None if math.isnan(number) else (number,)


def _write(
    folder: ExperimentFolder,
    config: ExperimentConfig,
    old: OldExperiment,
    trials: list[tuple[Trial, list[MetricRow]]],
    source: Path,
) -> None:
    ends = [trial.end_time or 0.0 for trial, _ in trials]
    began = old.start_time or min((trial.created for trial, _ in trials), default=0.0)
    row = ExperimentRow(
        id=folder.experiment_id,
        name=config.experiment_name,
        status=ExperimentStatus.VIEWED.value,
        config=_stored_config(config, old.config),
        token=secrets.token_hex(16),
        created=began,
    )
    (folder.path / "nni_config.json").write_text(json.dumps(old.config, indent=2), encoding="utf-8")
    store = Store.create(folder.database, row, ("default",))
    more = [f"{len(old.notes) - _LISTED} more"] if len(old.notes) > _LISTED else []
    origin = f"an experiment of NNI, in {source.resolve()}" + ("" if direction_of(old.config) else _HIGHEST)
    changes = Changes(
        trials={trial.trial_id: trial for trial, _ in trials},
        metrics=[row for _, rows in trials for row in rows],
    )
    store.commit(
        StoreTick(
            changes=changes,
            status=row.status,
            reason="; left out: ".join([origin, *old.notes[:_LISTED], *more]),
            run_time=old.run_time,
            end_time=old.end_time or max(ends, default=began),
        )
    )
    store.close()
