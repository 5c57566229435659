"""Errors that the user can correct: one sentence on stderr and an exit code, never a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

__all__ = ["FAILED", "INTERRUPTED", "USAGE", "Failure", "explained"]

FAILED = 1
USAGE = 2
INTERRUPTED = 130


class Failure(click.ClickException):
    """A verb cannot do its work; `exit_code` is 2 for usage errors, 1 for everything else."""

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # pyright: ignore[reportAttributeAccessIssue]  (click reads it there)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence on stderr."""
        click.echo(f"error: {self.message}", file=file, err=file is None)


class BadConfig(Failure):
    """A config with all its problems and their places."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self._count = len(problems)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the problems, one per line, and their number."""
        from ..telling import counted

        found = f"{counted(self._count, 'problem')} found, nothing was started"
        click.echo(f"{self.message}\n{found}", file=file, err=file is None)


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors that the packages below raise for users into `Failure`."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.exceptions.Abort, BrokenPipeError):
        raise
    except Exception as error:
        failure = _failure(error)
        if failure is None:
            raise
        raise failure from error


def _failure(error: Exception) -> Failure | None:
    from ..config import ConfigError
    from ..executors import ExecutorError
    from ..manager.control import ControlError
    from ..protocol import MissingExtraError
    from ..store import FolderError, RuntimeDirectoryError, StorageError, StoreError
    from ..telling import escaped

    if isinstance(error, ConfigError):
        return BadConfig([escaped(str(problem)) for problem in error.problems])
    if isinstance(error, FolderError | RuntimeDirectoryError):
        return Failure(str(error))
    if isinstance(error, StoreError | StorageError | ExecutorError | ControlError | MissingExtraError):
        return Failure(str(error), FAILED)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return Failure(f"{where}{error.strerror}", FAILED)
    return None
