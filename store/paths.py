"""Paths as users name them, and the directory of experiments if they name none."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["FolderError", "absolute", "default_directory", "is_default"]

_ENVIRONMENT = "PITCHPIPE_DIR"


class FolderError(Exception):
    """A folder cannot be used, such as that of an experiment; the message says which and why."""


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a file or folder, which may begin with `~`; raise `FolderError`.

    >>> absolute("~/runs") == Path.home() / "runs"
    True
    """
    expanded = os.path.expanduser(path)
    if expanded.partition(os.sep)[0] == "~":
        raise FolderError(f"there is no home directory for {path}: set HOME, or name an absolute path")
    try:
        return Path(os.path.abspath(expanded))
    except FileNotFoundError:
        why = "the working directory was deleted"
        raise FolderError(f"{why}: change to another, or name an absolute path instead of {path}") from None


def default_directory() -> Path:
    """Return the directory of experiments if none is named: `$PITCHPIPE_DIR`, else ~/pitchpipe-experiments.

    Raise `FolderError` if that is nowhere.
    """
    if chosen := os.environ.get(_ENVIRONMENT):
        return absolute(chosen)
    try:
        return absolute("~/pitchpipe-experiments")
    except FolderError as error:
        raise FolderError(f"{error}, in {_ENVIRONMENT} or with --dir") from None


def is_default(directory: Path) -> bool:
    """Return whether verbs look into a directory when none is named."""
    try:
        return directory == default_directory()
    except FolderError:
        return False
