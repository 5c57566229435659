"""Paths as users name them, the directories in which experiments are found, and files that are written whole."""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_log = logging.getLogger(__name__)
_ENVIRONMENT = "PITCHPIPE_DIR"
_LINK = ".directory-"


class FolderError(Exception):
    """A folder cannot be used, such as that of an experiment; the message says which and why."""


class FolderExistsError(FolderError):
    """There is a folder where a new experiment was to be made."""


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a file or folder, which may begin with `~`; raise `FolderError`.

    >>> absolute("~/runs") == Path.home() / "runs"
    True
    """
    expanded = with_home(path)
    try:
        return Path(os.path.abspath(expanded))
    except FileNotFoundError:
        why = "the working directory was deleted"
        raise FolderError(f"{why}: change to another, or name an absolute path instead of {path}") from None


def with_home(path: str | os.PathLike[str]) -> str:
    """Return a path with a home directory in place of `~` or `~USER` at its beginning; raise `FolderError`.

    >>> with_home("~/runs") == str(Path.home() / "runs")
    True
    """
    expanded = os.path.expanduser(os.fspath(path))
    first = expanded.partition(os.sep)[0]
    if first == "~":
        raise FolderError(f"there is no home directory for {path}: set HOME, or name an absolute path")
    if first.startswith("~"):
        raise FolderError(f"there is no user {first[1:]}, named by {path}: name an absolute path")
    return expanded


def default_directory() -> Path:
    """Return the directory of experiments if none is named: `$PITCHPIPE_DIR`, else ~/pitchpipe-experiments.

    Raise `FolderError` if that is nowhere.
    """
    if chosen := os.environ.get(_ENVIRONMENT):
        return absolute(chosen)
    try:
        return absolute("~/pitchpipe-experiments")
    except FolderError as error:
        raise FolderError(f"{error}, in {_ENVIRONMENT} or as the directory of experiments") from None


def is_default(directory: Path) -> bool:
    """Return whether verbs look into a directory when none is named, wherever they are called."""
    try:
        is_fixed = os.path.isabs(with_home(os.environ.get(_ENVIRONMENT) or "~"))
        return is_fixed and directory == default_directory()
    except FolderError:
        return False


def link_directory(directory: Path, default: Path) -> None:
    """Put a link to a directory into the default one, without those to directories that were removed.

    Where none can be made (the default directory is read-only), `--dir` finds the experiments.
    """
    place = os.path.realpath(directory)
    if place == os.path.realpath(default):
        return
    name = _LINK + hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    try:
        default.mkdir(parents=True, exist_ok=True)
        for link in default.glob(f"{_LINK}*"):
            if not os.path.lexists(os.readlink(link)):
                link.unlink(missing_ok=True)
        with suppress(FileExistsError):  # it is known
            (default / name).symlink_to(directory)
    except OSError as error:
        _log.info("experiments in %s are found with --dir only: %s", directory, error)


def linked_folders(default: Path) -> Iterator[Path]:
    """Yield what is in the directories to which a directory has links, as far as they can be read."""
    for link in sorted(default.glob(f"{_LINK}*")):
        with suppress(OSError):  # a directory that was removed, or is closed to this user
            yield from sorted(Path(os.readlink(link)).iterdir())


def problem_of_link(directory: Path) -> str:
    """Return what is wrong if a directory is, or is below, a link to what is not there; an empty text otherwise."""
    links = (path for path in (directory, *directory.parents) if path.is_symlink() and not path.exists())
    return next((f"{link} is a link to {link.readlink()}, which is not there" for link in links), "")


def shell_word(path: str | os.PathLike[str]) -> str:
    """Return a path as one word of a command line: bytes that cannot be shown are escaped, as bash and zsh read them.

    >>> print(shell_word("my runs"), shell_word(os.fsdecode(b"caf\\xe9's")))
    'my runs' $'caf\\xe9\\x27s'
    """
    text = os.fspath(path)
    if text.isprintable():
        return shlex.quote(text)
    plain = set(range(0x20, 0x7F)) - set(b"\\'")
    return "$'" + "".join(chr(one) if one in plain else f"\\x{one:02x}" for one in os.fsencode(text)) + "'"


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one at a path when the block ends without an error, and is removed otherwise.

    A link leads to the file that is replaced. What is not a regular file, such as a pipe or a device, is written as it
    is. An `OSError` names the path, not the unfinished file beside it.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = unfinished.open("wb")
        try:
            with file:
                yield file
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.filename == os.fspath(unfinished):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
