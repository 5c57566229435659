"""Reads the results of earlier searches: experiments, CSV files, Optuna studies and NNI's experiments."""

from __future__ import annotations

import csv
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..numerics import mean
from ..protocol import (
    Json,
    MetricError,
    MissingExtraError,
    Objective,
    Parameters,
    foreign,
    metric_value,
    number_in,
    require_extra,
    with_default,
)
from ..runner import TrialStatus
from ..store import ExperimentFolder, FolderError, StoreError, default_directory
from ..store.reading import ExperimentView, TrialTable, cell_text, cell_value, columns_in, flat

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

# Of `pitchpipe export`; a parameter of such a name has the prefix `parameters.` there.
_OTHER_COLUMNS = frozenset(
    column.exported_name for column in columns_in(TrialTable.CSV, with_repeats=False) if column.kind != "json"
)
_OF_REPEATS = frozenset(column.name for column in columns_in(TrialTable.CSV) if column.of_repeats)
# Before the names of parameters in the tables of Optuna and of Ray Tune, whose other columns are not parameters.
_PREFIXES = ("params_", "config/")
_SUCCEEDED = (None, TrialStatus.SUCCEEDED.value, "COMPLETE")


class UnreadableSource(Exception):
    """An earlier search cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class EarlierResult:
    """The parameters of an earlier trial, flat with dots, its result (the lower the better), its other metrics.

    `direction` is that of its experiment, if that has the same objective.
    """

    parameters: Mapping[str, Json]
    loss: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    direction: str | None = None


def read_earlier(source: str, objective: Objective, directory: Path) -> tuple[list[EarlierResult], int]:
    """Return the results of an earlier search for an objective, and how many others are not finite or missing.

    `source` is an experiment's id (in `directory`) or folder, a CSV file, `STORAGE:STUDY` of Optuna, or the folder of
    an experiment of NNI. Raise `UnreadableSource`.
    """
    try:
        everything = list(_results(os.path.expanduser(source), objective, directory))
    except OSError as error:
        raise UnreadableSource(f"it cannot be read: {error.strerror or error}") from error
    results = [result for result in everything if math.isfinite(result.loss)]
    if not results:
        raise UnreadableSource("it has no results")
    return results, len(everything) - len(results)


def _results(source: str, objective: Objective, directory: Path) -> Iterator[EarlierResult]:
    if "://" in source:
        return _of_study(source)
    if source.lower().endswith(".csv"):
        return _of_csv(Path(source), objective)
    for other in foreign("earlier results"):
        if (file := other.find_results(Path(source))) is not None:
            return _of_other_tuner(other.read_results(file), other.TUNER, objective)
    if os.path.isfile(source):
        raise UnreadableSource(
            "it is a file, but not a CSV file: save it as .csv with commas, such as by pitchpipe export --format csv"
        )
    return _of_experiment(source, objective, directory)


def _of_experiment(source: str, objective: Objective, directory: Path) -> Iterator[EarlierResult]:
    try:
        folder = ExperimentFolder(Path(source)) if "/" in source else _experiment(directory, source)
        with ExperimentView(folder) as view:
            objectives = {objective.name: objective.direction for objective in view.objectives()}
            name = objective.name if objective.name in objectives else next(iter(objectives))
            if len(objectives) > 1 and name != objective.name:
                known = ", ".join(objectives)
                raise UnreadableSource(f"it has no objective '{objective.name}'; its objectives are {known}")
            direction = objectives[name] if name == objective.name else None
            families = view.families()
            for trial in chain.from_iterable([families] if families else view.portions()):
                if trial.status == TrialStatus.SUCCEEDED.value and name in trial.values:
                    loss = _loss(trial.values[name], objectives[name])
                    yield EarlierResult(flat(trial.parameters), loss, trial.values, direction)
    except (FolderError, StoreError) as error:
        raise UnreadableSource(str(error)) from error


def _experiment(directory: Path, experiment_id: str) -> ExperimentFolder:
    try:
        return ExperimentFolder.find(directory, experiment_id)
    except FolderError:
        with suppress(FolderError):
            return ExperimentFolder.find(default_directory(), experiment_id)
        raise


def _of_csv(path: Path, objective: Objective) -> Iterator[EarlierResult]:
    """Yield the rows of a file with a column for each parameter and one for the result, NaN where it is missing."""
    names = (f"final.{objective.name}", "final", objective.name, "value")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            # A row with more cells than the head has the rest under no name.
            rows = csv.DictReader(file, _head([*map(cell_text, next(lines, ()))]), restkey="")
            twice = [name for name, times in Counter(rows.fieldnames or ()).items() if name and times > 1]
            if twice:
                raise UnreadableSource(f"it has two columns {twice[0]!r}: rename or remove one")
            column = next((name for name in names if name in (rows.fieldnames or ())), None)
            if column is None:
                head = rows.fieldnames or ()
                if len(head) == 1 and (separators := {";", "\t"} & {*head[0]}):
                    what = f"its columns are separated by {separators.pop()!r}"
                    raise UnreadableSource(f"{what}: save it with commas")
                raise UnreadableSource(f"no column has the result: name it {', '.join(names[:-1])} or value")
            has_repeats = {"sequence_id", *_OF_REPEATS} <= set(rows.fieldnames or ())
            others = _OTHER_COLUMNS | _OF_REPEATS if has_repeats else _OTHER_COLUMNS
            prefix = _prefix(rows.fieldnames or ())
            results = ("final.", "metrics.") if _is_own(rows.fieldnames or ()) else ("final.",)
            families = dict[Any, list[EarlierResult]]()
            for number, row in enumerate(rows):
                value = cell_value(row.pop(column) or "")
                if row.get("state" if prefix else "status") in _SUCCEEDED:
                    loss = _loss(number_in(value), objective.direction)
                    parameters = {
                        name.removeprefix(prefix or "parameters."): cell_value(text)
                        for name, text in row.items()
                        if name and text and name not in others and not name.startswith(results)
                        if name.startswith(prefix)
                    }
                    finals = {
                        name[6:]: number_in(cell_value(text or ""))
                        for name, text in row.items()
                        if name[:6] == "final."
                    }
                    metrics = {name: final for name, final in finals.items() if not math.isnan(final)}
                    result = EarlierResult(parameters, loss, metrics)
                    family = row["family"] if has_repeats and not math.isnan(loss) else number
                    families.setdefault(family, []).append(result)
            yield from map(_mean, families.values())
    except FileNotFoundError as error:
        raise UnreadableSource("no such file") from error
    except UnicodeDecodeError as error:
        raise UnreadableSource("its text is not UTF-8: save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise UnreadableSource(f"it cannot be read: {error}") from error


def _prefix(names: Sequence[str]) -> str:
    """Return what another tuner writes before the names of parameters; empty if the file is not its own."""
    prefixes = () if _is_own(names) else _PREFIXES
    return next((prefix for prefix in prefixes for name in names if name.startswith(prefix)), "")


def _head(names: Sequence[str]) -> list[str]:
    """Return the names of columns without the spaces that people write around commas.

    Pitchpipe's own exports have none there, so a space at the end of a name in them belongs to a parameter.
    """
    return [*names] if _is_own(names) else [name.strip() for name in names]


def _is_own(names: Sequence[str]) -> bool:
    """Return whether a file with these columns is an export of Pitchpipe."""
    return {"sequence_id", "id"} <= {*names}


def _mean(repeats: Sequence[EarlierResult]) -> EarlierResult:
    """Return the result of one configuration."""
    names = set.intersection(*(set(result.metrics) for result in repeats))
    metrics = {name: mean([result.metrics[name] for result in repeats]) for name in names}
    return EarlierResult(repeats[0].parameters, mean([result.loss for result in repeats]), metrics)


def _of_study(source: str) -> Iterator[EarlierResult]:
    """Yield the complete trials of `STORAGE:STUDY`."""
    try:
        require_extra("reading a study needs", "optuna")
    except MissingExtraError as error:
        raise UnreadableSource(str(error)) from None
    import optuna

    storage, _, name = source.rpartition(":")
    _refuse_other_file(storage)
    try:
        with optuna_storage(storage) as studies:
            known = optuna.get_all_study_names(studies)
            if name not in known:
                raise UnreadableSource(f"it has no study '{name}'; it has {', '.join(known) or 'none'}")
            study = optuna.load_study(study_name=name, storage=studies)
            maximized = study.directions[0].name == "MAXIMIZE"
            trials = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    except UnreadableSource:
        raise
    except Exception as error:  # Optuna raises whatever its storage raises
        raise UnreadableSource(f"it cannot be read ({type(error).__name__}: {error})") from error
    for trial in trials:
        exported = trial.user_attrs.get("parameters")  # by `pitchpipe export`, or the user's own
        parameters = exported if isinstance(exported, dict) else trial.params
        yield EarlierResult(flat(parameters), _loss(trial.values[0], "maximize" if maximized else "minimize"))


@contextmanager
def optuna_storage(url: str) -> Iterator[BaseStorage]:
    """Give the storage of studies that a URL names; its connections to a database are closed afterwards."""
    from optuna.storages import RDBStorage, get_storage

    storage = get_storage(url) if url.startswith("redis") else RDBStorage(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        if isinstance(storage, RDBStorage):
            storage.engine.dispose()


def _refuse_other_file(storage: str) -> None:
    """Raise `UnreadableSource` for a SQLite file without studies: Optuna would make the file, or its tables in it."""
    scheme, _, name = storage.partition(":///")
    if scheme.partition("+")[0] != "sqlite" or "?" in name:
        return
    file = Path(name).absolute()
    if not file.is_file():
        raise UnreadableSource(f"there is no file {file}")
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
            db.execute("SELECT 1 FROM studies")
    except sqlite3.Error as error:
        raise UnreadableSource(f"{file} is not a file of Optuna: {error}") from error


def _of_other_tuner(
    results: Iterator[tuple[Parameters, Json, str | None]], tuner: str, objective: Objective
) -> Iterator[EarlierResult]:
    """Yield the trials of another tuner that succeeded with a number, in its own direction if it names one."""
    try:
        for parameters, value, direction in results:
            try:
                number = metric_value(with_default(value, objective.name))
            except MetricError:
                continue
            yield EarlierResult(flat(parameters), _loss(number, direction or objective.direction))
    except (sqlite3.Error, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UnreadableSource(f"it cannot be read as an experiment of {tuner}: {error}") from error


def _loss(value: float, direction: str | None) -> float:
    return -value if direction == "maximize" else value
