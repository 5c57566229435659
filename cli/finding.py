"""The experiment a verb means: the one named, else the only running one, else the newest."""

from __future__ import annotations

from pathlib import Path

import click

from ..store import ExperimentFolder, FolderError, StoreError, default_directory
from .failures import USAGE, Failure

__all__ = ["chosen_experiment", "chosen_name", "experiments_directory"]


def chosen_experiment(name: str | None, option: str | None, directory: Path | None) -> ExperimentFolder:
    """Return the folder of the experiment that ID or `--experiment-id` names: an id, its beginning, or a path.

    Without a name, print on stderr which one is used. Raise `FolderError`, or `Failure` if there is none.
    """
    chosen = chosen_name(name, option)
    directory = experiments_directory(directory)
    if chosen is None:
        return _obvious(directory)
    if "/" in chosen:
        return _at(Path(chosen))
    try:
        return ExperimentFolder.find(directory, chosen)
    except FolderError:
        if ExperimentFolder(Path(chosen).absolute()).database.is_file():
            return _at(Path(chosen))
        raise


def chosen_name(name: str | None, option: str | None) -> str | None:
    """Return the one of the two that is given; both may be equal."""
    if name is not None and option is not None and name != option:
        raise Failure(f"ID says '{name}' and --experiment-id says '{option}': give one of them", USAGE)
    return name if name is not None else option


def experiments_directory(directory: Path | None) -> Path:
    """Return the absolute path of the directory of experiments: that of `--dir`, or else the default."""
    return (directory or default_directory()).expanduser().absolute()


def _at(path: Path) -> ExperimentFolder:
    folder = ExperimentFolder(path.expanduser().absolute())
    if not folder.database.is_file():
        raise FolderError(f"{path} is not the folder of an experiment: it contains no experiment.db")
    return folder


def _obvious(directory: Path) -> ExperimentFolder:
    known = list(ExperimentFolder.all(directory))
    running = [folder for folder in known if folder.manager() is not None]
    if len(running) > 1:
        ids = ", ".join(folder.experiment_id for folder in running)
        raise Failure(
            f"{len(running)} experiments are running in {directory}; give the ID of one: {ids}", USAGE
        )
    if not known:
        raise Failure(f"there are no experiments in {directory}: pitchpipe run CONFIG, or --dir DIR", USAGE)
    folder = running[0] if running else max(known, key=_created)
    why = "which is running" if running else "the newest"
    click.echo(f"experiment {folder.experiment_id} ({why} in {directory})", err=True)
    return folder


def _created(folder: ExperimentFolder) -> float:
    from ..store.reading import ExperimentView

    try:
        with ExperimentView(folder) as view:
            return view.experiment()["created"]
    except StoreError:
        return 0.0
