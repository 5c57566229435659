"""Where the sockets and the state of running processes live: one private folder per user.

Nothing in it has to outlive the machine's next start. It belongs to the user alone, because what it holds
(sockets, tokens) lets every process that reaches it run programs as that user.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

__all__ = ["RUNTIME_DIRECTORY_ENVIRONMENT", "RuntimeDirectoryError", "private_directory", "runtime_directory"]

RUNTIME_DIRECTORY_ENVIRONMENT = "PITCHPIPE_RUNTIME_DIR"
_HINT = f"set {RUNTIME_DIRECTORY_ENVIRONMENT} to a private folder (chmod 700) of your own"


class RuntimeDirectoryError(OSError):
    """The runtime directory cannot be made, or others could get at what is in it."""


def runtime_directory() -> Path:
    """Return the user's runtime directory, made (mode 0700) if it is not there.

    It is `$PITCHPIPE_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/pitchpipe`, else `pitchpipe-<uid>` in the folder
    for temporary files. Raises `RuntimeDirectoryError` when it cannot be made, is a link, belongs to somebody
    else or is open to others.
    """
    return private_directory(_choose())


def private_directory(path: Path, what: str = "runtime directory", hint: str = _HINT) -> Path:
    """Return the folder `path`, made (mode 0700) if it is not there; raise `RuntimeDirectoryError` like the other."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = path.lstat()
    except OSError as error:
        raise RuntimeDirectoryError(f"cannot make the {what} {path}: {error.strerror}; {hint}") from error
    problem = _problem(info)
    if problem:
        raise RuntimeDirectoryError(f"the {what} {path} {problem}; {hint}")
    return path


def _choose() -> Path:
    chosen = os.environ.get(RUNTIME_DIRECTORY_ENVIRONMENT)
    if chosen:
        return Path(chosen).absolute()
    session = os.environ.get("XDG_RUNTIME_DIR")
    # A left-over variable (su, containers) may name a folder that is not there or not ours.
    if session and os.path.isdir(session) and os.access(session, os.W_OK):
        return Path(session).absolute() / "pitchpipe"
    return Path(tempfile.gettempdir()) / f"pitchpipe-{os.getuid()}"


def _problem(info: os.stat_result) -> str | None:
    # A link is refused: in a folder that all may write to, it could be somebody else's.
    if not stat.S_ISDIR(info.st_mode):
        return "is not a folder"
    if info.st_uid != os.getuid():
        return f"belongs to the user {info.st_uid}"
    if info.st_mode & 0o077:
        return f"is open to others (mode {stat.S_IMODE(info.st_mode):04o})"
    return None
