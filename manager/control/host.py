"""A manager that runs in this process: with its log, its control socket, its warnings and its progress."""

from __future__ import annotations

import base64
import logging
import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from ...executors import ExecutorError
from ...protocol import JsonObject
from ...runner import ExperimentStatus, RateMeter, TrialRunner, forecast
from ...store import StoreError
from .connection import ControlError, ControlServer, ManagerStatus, Operation
from .manager_log import logged
from .operations import LiveChanges

if TYPE_CHECKING:
    from ..manager import Manager

_log = logging.getLogger(__name__)
_MOST_WAITING = 100
_MOST_BYTES = 48 * 1024  # of a file, in one reply


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
        if runner is None:
            elapsed = now - self._began
            return {"pid": pid, "status": "STARTING", "elapsed": elapsed, "waiting": {}, "warnings": warnings}
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
