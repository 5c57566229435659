"""Where the sockets and the state of running processes live: one private folder per user.

Nothing in it has to outlive the machine's next start. It belongs to the user alone, because what it holds
(sockets, tokens) lets every process that reaches it run programs as that user.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

from .paths import FolderError, absolute

RUNTIME_DIRECTORY_ENVIRONMENT = "PITCHPIPE_RUNTIME_DIR"
_HINT = f"set {RUNTIME_DIRECTORY_ENVIRONMENT} to a private folder (chmod 700) of your own"
# How many bytes the path of a socket may have.
_SOCKET_LIMIT = 107 if sys.platform == "linux" else 103
# The longest name in the runtime directory is that of an agent's socket.
_ROOM = len("/a-0123456789ab/01234567.sock")
# Where to go when the folder for temporary files has a long path.
_SHORT = ("/tmp", "/var/tmp")


class RuntimeDirectoryError(OSError):
    """The runtime directory cannot be made, or others could get at what is in it."""


def runtime_directory() -> Path:
    """Return the user's runtime directory, made (mode 0700) if it is not there.

    It is `$PITCHPIPE_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/pitchpipe`, else `pitchpipe-<uid>` in the folder
    for temporary files; one of the latter two whose path is too long for sockets is passed over. Raises
    `RuntimeDirectoryError` when it cannot be made, is a link, belongs to somebody else, is open to others, or was
    chosen with a path that is too long.
    """
    chosen = os.environ.get(RUNTIME_DIRECTORY_ENVIRONMENT)
    if not chosen:
        return private_directory(_choose())
    try:
        path = absolute(chosen)
    except FolderError as error:
        raise RuntimeDirectoryError(f"the runtime directory is nowhere: {error}") from error
    if not _fits(path, _ROOM):
        most = f"sockets need one of at most {_SOCKET_LIMIT - _ROOM}"
        raise RuntimeDirectoryError(
            f"the path of the runtime directory {path} is too long: {most} bytes; {_HINT}"
        )
    return private_directory(path)


def private_directory(path: Path, what: str = "runtime directory", hint: str = _HINT) -> Path:
    """Return the folder `path`, made (mode 0700) if it is not there; raise `RuntimeDirectoryError` like the other."""
    try:
        if not path.exists():
            path.mkdir(mode=0o700, parents=True)
            path.chmod(0o700)  # a umask may take away the owner's bits
        info = path.lstat()
    except OSError as error:
        raise RuntimeDirectoryError(f"cannot make the {what} {path}: {error.strerror}; {hint}") from error
    problem = _problem(info)
    if problem:
        raise RuntimeDirectoryError(f"the {what} {path} {problem}; {hint}")
    return path


def folder_for_sockets(room: int) -> Path:
    """Return a folder for temporary files in which the path of a socket may have `room` more bytes."""
    usable = (Path(each) for each in (tempfile.gettempdir(), *_SHORT) if os.access(each, os.W_OK))
    return next((each for each in usable if _fits(each, room)), Path(_SHORT[0]))


def _fits(folder: Path, room: int) -> bool:
    return len(os.fsencode(folder)) + room <= _SOCKET_LIMIT


def _choose() -> Path:
    session = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nowhere") / "pitchpipe"
    # A variable that is left over (from su, sudo -E, a container) may name a folder that is missing or not the user's.
    is_there = session.is_absolute() and _is_own(session.parent)
    if is_there and (_is_own(session) or not session.exists()) and _fits(session, _ROOM):
        return session
    name = f"pitchpipe-{os.getuid()}"
    return folder_for_sockets(len(name) + 1 + _ROOM) / name


def _is_own(folder: Path) -> bool:
    return os.path.isdir(folder) and folder.stat().st_uid == os.getuid() and os.access(folder, os.W_OK)


def _problem(info: os.stat_result) -> str | None:
    # A link is refused: in a folder that all may write to, it could be somebody else's.
    if not stat.S_ISDIR(info.st_mode):
        return "is not a folder"
    if info.st_uid != os.getuid():
        return f"belongs to the user {info.st_uid}"
    if info.st_mode & 0o700 != 0o700:
        return f"is closed to its owner (mode {stat.S_IMODE(info.st_mode):04o}): chmod 700 it"
    if info.st_mode & 0o077:
        return f"is open to others (mode {stat.S_IMODE(info.st_mode):04o})"
    return None
