"""Which experiment a verb means (the named one, else the only running one, else the newest), and which trial."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..store import ExperimentFolder, FolderError, StoreError, absolute, default_directory
from ..store.reading import ExperimentView, TrialDetail, TrialQuery
from .failures import Failure


def chosen_experiment(name: str | None, option: str | None, directory: Path | None) -> ExperimentFolder:
    """Return the folder of the experiment that ID or `--experiment-id` names: an id, its beginning, or a path.

    Without a name, print on stderr which experiment is used. Raise `FolderError`, or `Failure` if there is none.
    """
    chosen = chosen_name(name, option)
    if chosen is not None and "/" in chosen:
        return _at(Path(chosen))
    directory = experiments_directory(directory)
    if chosen is None:
        return _obvious(directory)
    try:
        return ExperimentFolder.find(directory, chosen)
    except FolderError:
        if ExperimentFolder(absolute(chosen)).has_experiment:
            return _at(Path(chosen))
        raise


def chosen_name(name: str | None, option: str | None) -> str | None:
    """Return the name given as ID or as `--experiment-id`; raise `Failure` if they differ."""
    if name is not None and option is not None and name != option:
        raise Failure(f"ID says '{name}' and --experiment-id says '{option}': give one of them")
    return name if name is not None else option


def experiments_directory(directory: Path | None) -> Path:
    """Return the absolute path of the directory that `--dir` names, or of the default one."""
    return absolute(directory) if directory else default_directory()


def split_names(
    names: Sequence[str], experiment_id: str | None, directory: Path | None
) -> tuple[ExperimentFolder, str]:
    """Return the experiment's folder and the word for the trial; two names may come in either order."""
    if len(names) > 2:
        raise Failure(f"give [ID] TRIAL, not {len(names)} words: {' '.join(names)}")
    if len(names) == 1:
        return chosen_experiment(None, experiment_id, directory), names[0]
    try:
        return chosen_experiment(names[0], experiment_id, directory), names[1]
    except FolderError:
        if not names[0].isdecimal() or names[1].isdecimal():
            raise
        return chosen_experiment(names[1], experiment_id, directory), names[0]


def chosen_trial(view: ExperimentView, word: str) -> TrialDetail:
    """Return the trial that a word names: a sequence number, an id, or the beginning of a single id."""
    matching = view.matching(word)
    if len(matching) == 1:
        return view.trial(matching[0][0])
    if matching:
        ids = ", ".join(trial_id for _, trial_id in matching[:10])
        raise Failure(f"'{word}' may be any of {ids} in experiment {view.experiment_id}")
    total = view.trials(TrialQuery(limit=0)).total
    others = f"it has trials 0 to {total - 1}" if total else "it has no trials yet"
    raise Failure(f"there is no trial '{word}' in experiment {view.experiment_id}: {others}")


def _at(path: Path) -> ExperimentFolder:
    folder = ExperimentFolder(absolute(path))
    folder.refuse_if_closed()
    if not folder.has_experiment:
        raise FolderError(f"{path} is not the folder of an experiment: it contains no experiment.db")
    return folder


def _obvious(directory: Path) -> ExperimentFolder:
    folders = list(ExperimentFolder.all(directory))
    running = [folder for folder in folders if folder.manager() is not None]
    if len(running) > 1:
        ids = ", ".join(folder.experiment_id for folder in running)
        raise Failure(f"{len(running)} experiments are running; give the ID of one: {ids}")
    if not folders:
        raise Failure(f"there are no experiments in {directory}: pitchpipe run CONFIG, or --dir DIR")
    folder = running[0] if running else max(folders, key=_created)
    why = "which is running" if running else "the newest"
    click.echo(f"experiment {folder.experiment_id} ({why} in {folder.path.parent})", err=True)
    return folder


def _created(folder: ExperimentFolder) -> float:
    try:
        with ExperimentView(folder) as view:
            return view.experiment().created
    except StoreError:
        return 0.0
