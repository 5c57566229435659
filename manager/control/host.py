"""A manager that runs in this process: with its log, its control socket, its warnings and its progress.

All log messages go to logs/manager.log in the experiment's folder, warnings also to the terminal. Only the logger
`pitchpipe` is changed; the root logger belongs to the program. Experiments that run in one process at the same time get
each other's messages, too.
"""

from __future__ import annotations

import base64
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING

from ...executors import ExecutorError
from ...protocol import JsonObject
from ...runner import ExperimentStatus, RateMeter, TrialRunner, forecast
from ...store import ExperimentFolder, StoreError
from ...telling import escaped
from .connection import ControlError, ControlServer, ManagerStatus, Operation
from .operations import LiveChanges

if TYPE_CHECKING:
    from ..manager import Manager

_log = logging.getLogger(__name__)
_MOST_WAITING = 100
_MOST_BYTES = 48 * 1024  # of a file, in one reply
_MOST_LOGGED = 10_000_000  # bytes of the log, before the next file begins
_LEVELS = {"fatal": logging.CRITICAL, "trace": logging.DEBUG}
_CHANGING = threading.Lock()


class RunningManager:
    """Opens a manager, its log and its control socket for an `async with` block; `wait` runs it to its end.

    `warn` gets warnings and errors as text; without it they go where the program's log messages go. `on_stop` is
    called once, at the first request to stop.
    """

    def __init__(
        self,
        manager: Manager,
        *,
        warn: Callable[[str], None] | None = None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._manager = manager
        self._warn = warn
        self._on_stop = on_stop
        self._is_stopping = False
        self._rate = RateMeter()
        self._began = time.time()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> RunningManager:
        manager, folder = self._manager, self._manager.folder
        async with self._stack as stack:
            stack.enter_context(logged(folder, manager.config.log_level, self._warn))
            manager.watch(self._note_progress)
            manager.open()
            stack.push_async_callback(manager.close)
            await stack.enter_async_context(ControlServer(folder.path, self._operations()))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def wait(self) -> ExperimentStatus:
        """Wait until the experiment is over and none of its processes runs; store and raise what ended it."""
        name, store = self._manager.folder.experiment_id, self._manager.store
        _log.info("experiment %s runs in process %d", name, os.getpid())
        try:
            await self._run()
        except Exception as error:
            if not isinstance(error, ExecutorError | StoreError):
                _log.exception("the manager failed")
            self._store_failure(why_failed(error))
            raise
        status = ExperimentStatus(store.experiment().status)
        _log.info("experiment %s is %s", name, status)
        return status

    async def _run(self) -> None:
        try:
            await self._manager.wait()
        finally:
            await self._manager.close()  # meanwhile it still replies to requests

    def _store_failure(self, reason: str) -> None:
        try:
            self._manager.store.set_status(ExperimentStatus.ERROR.value, reason)
        except StoreError as error:
            _log.error("that the experiment failed could not be written: %s", error)

    # ------------------------------------------------------------------ being stopped

    def stop(self, reason: str) -> None:
        """End the experiment: trials get their grace, and results are kept."""
        self._stop(self._manager.stop, reason)

    def stop_now(self, reason: str) -> None:
        """End the experiment as `stop` does, and commit that first."""
        self._stop(self._manager.stop_now, reason)

    def _stop(self, stop: Callable[[str], None], reason: str) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            stop(reason)
            self._on_stop()

    # ------------------------------------------------------------------ being asked

    def _operations(self) -> dict[str, Operation]:
        changes = LiveChanges(self._manager, self.stop_now).operations()
        return {**changes, "status": self._status, "read_file": partial(read_part, self._manager)}

    def _status(self, _request: JsonObject) -> ManagerStatus:
        runner, config, now = self._manager.runner, self._manager.config, time.time()
        pid, warnings = os.getpid(), self._manager.warnings()
        waits = [asdict(wait) for wait in self._manager.waits()]
        if runner is None:
            elapsed = now - self._began
            return {
                "pid": pid,
                "status": "STARTING",
                "elapsed": elapsed,
                "waiting": {},
                "warnings": warnings,
                "waits": waits,
            }
        elapsed, rate = runner.elapsed(now), self._rate.rate(now)
        remaining, is_bound = forecast(
            total=config.max_trial_number,
            finished=_finished(runner),
            rate=rate,
            elapsed=elapsed,
            longest=config.max_experiment_duration,
        )
        waiting = list(runner.waiting)[:_MOST_WAITING]
        return {
            "pid": pid,
            "status": runner.status.value,
            "elapsed": elapsed,
            "rate": rate,
            "remaining": remaining,
            "is_bound": is_bound,
            "waiting": {trial.trial_id: runner.why_waiting(trial) for trial in waiting},
            "warnings": warnings,
            "waits": waits,
        }

    def _note_progress(self) -> None:
        if (runner := self._manager.runner) is not None:
            self._rate.note(time.time(), _finished(runner))


async def read_part(manager: Manager, request: JsonObject) -> dict[str, str]:
    """Return a part of a file of a running trial: `{"data": base64}`, empty after its end.

    The request names the `trial`, the `name` of a file in its folder and an `offset` in bytes. Raise `ControlError` if
    it cannot be read.
    """
    runner, name = manager.runner, str(request.get("name", ""))
    trial_id, offset = str(request.get("trial")), request.get("offset", 0)
    if not name or "/" in name or not isinstance(offset, int) or offset < 0:
        raise ControlError("name a file of the trial's folder, and an offset in bytes", "invalid")
    orders = [] if runner is None else [each for each in runner.orders() if each.trial_id == trial_id]
    if not orders:
        raise ControlError(f"trial {trial_id} does not run")
    try:
        data = await manager.executor.read_file(orders[0], name, offset, _MOST_BYTES)
    except OSError as error:
        raise ControlError(f"{name} of trial {trial_id} cannot be read: {error}") from error
    return {"data": base64.b64encode(data).decode()}


def why_failed(error: Exception) -> str:
    """Say why a manager failed."""
    if isinstance(error, ExecutorError | StoreError):
        return str(error)
    return f"the manager failed: {type(error).__name__}: {error}"


def _finished(runner: TrialRunner) -> int:
    return len(runner.trials) - len(runner.live)


# ------------------------------------------------------------------ the log


@contextmanager
def logged(folder: ExperimentFolder, level: str, warn: Callable[[str], None] | None) -> Iterator[None]:
    """Log into the folder while the block runs.

    `warn` gets warnings and errors as text. Without it, messages also go where they went before.
    """
    logger = logging.getLogger(__name__.partition(".")[0])
    file = _File(folder.logs / "manager.log", maxBytes=_MOST_LOGGED, backupCount=2, delay=True)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    file.addFilter(_escape)
    file.setLevel(_LEVELS.get(level) or level.upper())
    with _CHANGING:
        beside = _beside(logger)
        if beside is None:
            beside = _Passing(logger) if warn is None else _Showing(logger, warn)
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
    if (harmless := escaped(text, keep="\n\t")) != text:
        record.msg, record.args = harmless, None
    return True


class _File(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # (the name is logging's)
        """Drop the line: on a full disk a traceback for each line would hide the warnings that matter."""


class _Beside(logging.Handler):
    """Does what the logger did before it wrote files, in place of its handlers, and remembers its settings."""

    def __init__(self, logger: logging.Logger, level: int) -> None:
        super().__init__(level)
        self.addFilter(_escape)
        self.files = 0
        self._before = logger.level, logger.propagate
        logger.addHandler(self)
        logger.propagate = False
        logger.setLevel(logging.NOTSET)

    def end(self, logger: logging.Logger) -> None:
        """Restore the logger's settings."""
        logger.removeHandler(self)
        level, logger.propagate = self._before
        logger.setLevel(level)


class _Passing(_Beside):
    """Passes messages on to the program's own handlers, as if there were no file."""

    def __init__(self, logger: logging.Logger) -> None:
        self._program = logger.parent if logger.propagate else None
        super().__init__(logger, logger.getEffectiveLevel())

    def emit(self, record: logging.LogRecord) -> None:
        if self._program is not None:
            self._program.callHandlers(record)


class _Showing(_Beside):
    """Shows warnings and errors as text."""

    def __init__(self, logger: logging.Logger, warn: Callable[[str], None]) -> None:
        self._warn = warn
        super().__init__(logger, logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        self._warn(f"{record.levelname.lower()}: {record.getMessage()}")


def _beside(logger: logging.Logger) -> _Beside | None:
    return next((handler for handler in logger.handlers if isinstance(handler, _Beside)), None)
