"""Paths as users name them, and the directory of experiments if they name none."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_ENVIRONMENT = "PITCHPIPE_DIR"


class FolderError(Exception):
    """A folder cannot be used, such as that of an experiment; the message says which and why."""


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
        raise FolderError(f"{error}, in {_ENVIRONMENT} or with --dir") from None


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


def is_default(directory: Path) -> bool:
    """Return whether verbs look into a directory when none is named, wherever they are called."""
    try:
        is_fixed = os.path.isabs(with_home(os.environ.get(_ENVIRONMENT) or "~"))
        return is_fixed and directory == default_directory()
    except FolderError:
        return False
