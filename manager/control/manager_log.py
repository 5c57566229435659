"""Where log messages go: all to logs/manager.log in the experiment's folder, warnings also to the terminal.

Only the logger `pitchpipe` is changed; the root logger belongs to the program. Experiments that run in one process at
the same time get each other's messages, too.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler

from ...store import ExperimentFolder
from ...telling import escaped

_MAX_BYTES = 10_000_000
_LEVELS = {"fatal": logging.CRITICAL, "trace": logging.DEBUG}
_CHANGING = threading.Lock()


@contextmanager
def logged(folder: ExperimentFolder, level: str, warn: Callable[[str], None] | None) -> Iterator[None]:
    """Log into the folder while the block runs.

    `warn` gets warnings and errors as text. Without it, messages also go where they went before.
    """
    logger = logging.getLogger(__name__.partition(".")[0])
    file = _File(folder.logs / "manager.log", maxBytes=_MAX_BYTES, backupCount=2, delay=True)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    file.addFilter(_escape)
    file.setLevel(_LEVELS.get(level) or level.upper())
    with _CHANGING:
        beside = _beside(logger) or _begin(
            logger, _Passing(logger) if warn is None else _Showing(logger, warn)
        )
        beside.files += 1
        logger.addHandler(file)
        logger.setLevel(min(logger.level or file.level, file.level))
    try:
        yield
    finally:
        with _CHANGING:
            logger.removeHandler(file)
            beside.files -= 1
            if not beside.files:
                beside.end(logger)
        with suppress(OSError):  # there is no room for its last lines
            file.close()


def _escape(record: logging.LogRecord) -> bool:
    """Escape the control characters of users' texts: logs are read on terminals, too."""
    text = record.getMessage()
    if (shown := escaped(text, keep="\n\t")) != text:
        record.msg, record.args = shown, None
    return True


class _File(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # (the name is logging's)
        """Drop the line: on a full disk a traceback for each line would hide the warnings that matter."""


class _Beside(logging.Handler):
    """Does what the logger did before it wrote files, and remembers its settings."""

    def __init__(self, logger: logging.Logger, level: int) -> None:
        super().__init__(level)
        self.addFilter(_escape)
        self.files = 0
        self._before = logger.level, logger.propagate

    def end(self, logger: logging.Logger) -> None:
        """Restore the logger's settings."""
        logger.removeHandler(self)
        level, logger.propagate = self._before
        logger.setLevel(level)


class _Passing(_Beside):
    """Passes messages on to the program's own handlers, as if there were no file."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger, logger.getEffectiveLevel())
        self._program = logger.parent if logger.propagate else None

    def emit(self, record: logging.LogRecord) -> None:
        if self._program is not None:
            self._program.callHandlers(record)


class _Showing(_Beside):
    """Shows warnings and errors as text."""

    def __init__(self, logger: logging.Logger, warn: Callable[[str], None]) -> None:
        super().__init__(logger, logging.WARNING)
        self._warn = warn

    def emit(self, record: logging.LogRecord) -> None:
        self._warn(f"{record.levelname.lower()}: {record.getMessage()}")


def _beside(logger: logging.Logger) -> _Beside | None:
    return next((handler for handler in logger.handlers if isinstance(handler, _Beside)), None)


def _begin(logger: logging.Logger, beside: _Beside) -> _Beside:
    logger.addHandler(beside)
    logger.propagate = False
    logger.setLevel(logging.NOTSET)
    return beside
