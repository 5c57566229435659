"""Where log messages go: all to logs/manager.log in the experiment's folder, warnings also to the display.

Only the logger `pitchpipe` is touched; the root logger belongs to whoever uses us as a library.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler

from ..store import ExperimentFolder

__all__ = ["logged"]

_MAX_BYTES = 10_000_000
_LEVELS = {"fatal": logging.CRITICAL, "trace": logging.DEBUG}


@contextmanager
def logged(folder: ExperimentFolder, level: str, warn: Callable[[str], None]) -> Iterator[None]:
    """Log into the folder while the block runs; `warn` gets warnings and errors as text."""
    logger = logging.getLogger(__name__.partition(".")[0])
    file = _File(folder.logs / "manager.log", maxBytes=_MAX_BYTES, backupCount=2, delay=True)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    shown = _Shown(warn)
    before = logger.level, logger.propagate
    logger.setLevel(_LEVELS.get(level) or level.upper())
    logger.propagate = False
    for handler in (file, shown):
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        for handler in (file, shown):
            logger.removeHandler(handler)
            handler.close()


class _File(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # (the name is logging's)
        """On a full disk the display has what matters; a traceback for each line that is not logged would hide it."""


class _Shown(logging.Handler):
    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._warn = warn

    def emit(self, record: logging.LogRecord) -> None:
        self._warn(f"{record.levelname.lower()}: {record.getMessage()}")
