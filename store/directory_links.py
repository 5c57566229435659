"""Directories of experiments beside the default one: it has a link to each, so that verbs need only an id."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_log = logging.getLogger(__name__)

_PREFIX = ".directory-"


def link_directory(directory: Path, default: Path) -> None:
    """Put a link to a directory into the default one, without those to directories that were removed.

    Where none can be made (the default directory is read-only), `--dir` finds the experiments.
    """
    place = os.path.realpath(directory)
    if place == os.path.realpath(default):
        return
    name = _PREFIX + hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    try:
        default.mkdir(parents=True, exist_ok=True)
        for link in default.glob(f"{_PREFIX}*"):
            if not os.path.lexists(os.readlink(link)):
                link.unlink(missing_ok=True)
        with suppress(FileExistsError):  # it is known
            (default / name).symlink_to(directory)
    except OSError as error:
        _log.info("experiments in %s are found with --dir only: %s", directory, error)


def linked_folders(default: Path) -> Iterator[Path]:
    """Yield what is in the directories to which a directory has links, as far as they can be read."""
    for link in sorted(default.glob(f"{_PREFIX}*")):
        with suppress(OSError):  # a directory that was removed, or is closed to this user
            yield from sorted(Path(os.readlink(link)).iterdir())
