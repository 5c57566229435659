"""Where the dispatcher process writes its log, and where the prints of plug-ins go."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

_LEVELS = {
    "fatal": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": 1,
}
_FORMAT = "[%(asctime)s] %(levelname)s (%(name)s/%(threadName)s) %(message)s"


def level_of(name: str | None) -> int:
    """Return the logging level of one of NNI's level names; info for an unknown one.

    >>> level_of("warning"), level_of(None)
    (30, 20)
    """
    return _LEVELS.get((name or "info").lower(), logging.INFO)


def configure_logging(directory: str | None, level: str | None) -> None:
    """Send the root logger, and everything written to standard output, to `directory`/dispatcher.log.

    Without a directory both go to standard error.
    """
    target = 2
    if directory:
        file = Path(directory, "dispatcher.log")
        target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    if sys.stdout is not None:
        sys.stdout.flush()
    os.dup2(target, 1)  # the descriptor itself, for the output of C code and child processes
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(_FORMAT, "%Y-%m-%d %H:%M:%S"))
    logging.root.handlers = [handler]
    logging.root.setLevel(level_of(level))
