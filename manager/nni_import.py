"""Makes an experiment of ours, which is VIEWED, of one that NNI ran: of its `db/nni.sqlite`, of NNI 1 to 3."""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..config import ConfigError, ExperimentConfig
from ..protocol import MetricError, metric_value
from ..runner import Changes, ExperimentStatus, FailureKind, MetricRow, Trial, TrialStatus
from ..store import ExperimentFolder, ExperimentRow, FolderError, Store, Tick
from .nni_results import OldExperiment, decoded, direction_of, nni_database, read_experiment

__all__ = ["import_nni_experiment"]

_STATUSES = frozenset(TrialStatus.__members__) - {"PAUSED"}
_UNFINISHED = "NNI's manager ended before it"


def import_nni_experiment(path: Path, directory: Path, experiment_id: str | None = None) -> ExperimentFolder:
    """Make an experiment of ours of the one in a folder of NNI, which is only read; its id stays unless one is given.

    Raise `FolderError` if there is none, if it cannot be read, or if the id is taken.
    """
    database = nni_database(path)
    if database is None:
        raise FolderError(f"{path} has no db/nni.sqlite: it is not the folder of an experiment of NNI")
    try:
        old = read_experiment(database)
        config = _config(old.params)
        trials = list(_trials(old))
    except (sqlite3.Error, ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
        raise FolderError(f"{path} cannot be read as an experiment of NNI: {error}") from error
    folder = ExperimentFolder.create(directory, experiment_id or str(old.profile["id"]))
    try:
        _write(folder, config, old, trials, path)
    except BaseException:
        folder.remove()
        raise
    folder.disown()
    return folder


def _config(params: Mapping[str, Any]) -> ExperimentConfig:
    """Return what can be shown of a config of any version; a search space in a form of its own is left out."""
    space = params.get("searchSpace") or {}
    fields: dict[str, Any] = {
        "experiment_name": params.get("experimentName"),
        "trial_command": params.get("trialCommand") or "NNI's config has none",
        "trial_concurrency": params.get("trialConcurrency"),
        "max_trial_number": params.get("maxTrialNumber") or params.get("maxTrialNum"),
        "objectives": [{"name": "default", "direction": direction_of(params) or "minimize"}],
        "training_service": {"platform": "local"},
        "search_space": json.loads(space) if isinstance(space, str) else space,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return ExperimentConfig.from_dict(given)
    except ConfigError:
        return ExperimentConfig.from_dict({**given, "search_space": {}})


def _shown(config: ExperimentConfig, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config as it is stored: with NNI's folder and plug-ins, which need not be there any more."""
    trial = params.get("trial") or {}
    shown = config.canonical()
    shown["trialCodeDirectory"] = str(params.get("trialCodeDirectory") or trial.get("codeDir") or "")
    for kind in ("tuner", "assessor"):
        section = params.get(kind) or {}
        name = section.get("name") or section.get(f"builtin{kind.title()}Name") or section.get("className")
        if name:
            shown[kind] = {"name": name, "classArgs": dict(section.get("classArgs") or {})}
    return shown


def _trials(old: OldExperiment) -> Iterator[tuple[Trial, list[MetricRow]]]:
    """Yield the trials in the order in which they began, with their results."""
    for number, (name, events) in enumerate(old.events.items()):
        record = old.records.get(name)
        moves = [event for event in events if event["event"] in _STATUSES]
        if record is None or not moves:
            continue
        trial = Trial(
            trial_id=name,
            sequence_id=number,
            parameter_id=json.loads(record).get("parameter_id"),
            record=record,
            created=_seconds(events[0]["timestamp"]),
            attempt=1,
        )
        _end(trial, moves)
        yield trial, list(_results(trial, old.metrics.get(name, ())))


def _end(trial: Trial, moves: list[Mapping[str, Any]]) -> None:
    """Set status and times by the events; a trial that had not ended was cancelled."""
    began = [move for move in moves if move["event"] == "RUNNING"]
    trial.start_time = _seconds(began[0]["timestamp"]) if began else trial.created
    trial.end_time = _seconds(moves[-1]["timestamp"])
    trial.status, trial.reason = TrialStatus(moves[-1]["event"]), moves[-1].get("message") or ""
    if trial.status is TrialStatus.FAILED:
        trial.reason, trial.kind = trial.reason or "NNI keeps no reason", FailureKind.USER_ERROR
    if not trial.status.is_final:
        trial.status, trial.reason = TrialStatus.SYS_CANCELED, _UNFINISHED


def _results(trial: Trial, metrics: Any) -> Iterator[MetricRow]:
    """Yield the results of a trial, each number once, and give it its final result."""
    seen = set[tuple[str, int]]()
    for metric in metrics:
        kind, sequence = metric["type"], int(metric["sequence"])
        if (kind, sequence) in seen:
            continue
        seen.add((kind, sequence))
        value = decoded(metric["data"])
        text = json.dumps(value)
        if kind == "FINAL":
            trial.final, trial.finals, trial.values = text, 1, _values(value)
        else:
            trial.next_sequence = trial.next_unsent = max(trial.next_sequence, sequence + 1)
        yield MetricRow(trial, 1, kind, sequence, text, _seconds(metric["timestamp"]))


def _values(value: Any) -> tuple[float] | None:
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
    began = _seconds(old.profile.get("startTime")) or min((trial.created for trial, _ in trials), default=0.0)
    row = ExperimentRow(
        id=folder.experiment_id,
        name=config.experiment_name,
        status=ExperimentStatus.VIEWED.value,
        config=_shown(config, old.params),
        token=secrets.token_hex(16),
        created=began,
    )
    (folder.path / "nni_config.json").write_text(json.dumps(old.params, indent=2), encoding="utf-8")
    store = Store.create(folder.database, row, ("default",))
    changes = Changes(
        trials={trial.trial_id: trial for trial, _ in trials},
        metrics=[row for _, rows in trials for row in rows],
    )
    store.commit(
        Tick(
            changes=changes,
            status=row.status,
            reason=f"an experiment of NNI, in {source.resolve()}",
            run_time=float(old.profile.get("execDuration") or 0),
            end_time=_seconds(old.profile.get("endTime")) or max(ends, default=began),
        )
    )
    store.close()


def _seconds(milliseconds: Any) -> float:
    return float(milliseconds or 0) / 1000
