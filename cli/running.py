"""Runs a manager in this process: its event loop, its control socket, its log, signals and the display."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ..executors import ExecutorError
from ..manager import Manager
from ..manager.control import ControlServer, LiveChanges, tell_part
from ..runner import ExperimentStatus
from ..store import Store, StoreError
from .display import Display
from .interrupts import Interrupts
from .last_resort import Deadline, kill_descendants
from .logs import logged
from .progress import ProgressMeter

__all__ = ["RunningExperiment"]

_log = logging.getLogger(__name__)

_SAMPLE = 0.25
_BY_USER = "stopped by the user"
# After the grace of its trials a stopped experiment gets so long to end; then its processes are killed.
_STOP_PATIENCE = 4.0
_KILL_PATIENCE = 3.0


class RunningExperiment:
    """One run of one manager; `run` answers whether a signal ended it.

    `on_running` is called once, when trials can run. Signals must be held already.
    """

    def __init__(self, manager: Manager, display: Display, interrupts: Interrupts) -> None:
        self.on_running: Callable[[], None] | None = None
        self._manager = manager
        self._display = display
        self._interrupts = interrupts
        self._meter = ProgressMeter(manager)
        self._signals = 0
        self._stop_asked = False
        self._error = ""
        self._has_executor = True
        self._deadline = Deadline(130, self._write_last_words)

    def run(self) -> bool:
        """Run the experiment to its end; True if a signal stopped it."""
        folder = self._manager.folder
        try:
            with self._display, logged(folder, self._manager.config.log_level, self._display.message):
                self._run_loop()
        finally:
            self._deadline.cancel()
            self._manager.store.close()
            folder.disown()
        return self._signals > 0

    @property
    def error(self) -> str:
        """Why the experiment could not run at all; empty if it could."""
        return self._error

    @property
    def has_executor(self) -> bool:
        """Could trials be reached where they run?"""
        return self._has_executor

    def _run_loop(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._main())
        finally:
            self._close(loop)

    async def _main(self) -> None:
        loop, manager = asyncio.get_running_loop(), self._manager
        manager.watch(self._on_tick)
        async with ControlServer(manager.folder.path, self._operations()):
            running = loop.create_task(manager.run())
            # The manager takes its first step before it can be asked to stop.
            await asyncio.sleep(0)
            sampling = loop.create_task(self._sample())
            with self._interrupts.told_to(lambda: _in_loop(loop, self._on_signal)):
                await self._outcome(running)
        sampling.cancel()
        self._display.update(self._meter.read(time.time()))

    async def _outcome(self, running: asyncio.Task[ExperimentStatus]) -> None:
        """Wait for the manager's end, and write down why it could not go on, if so."""
        try:
            _log.info("experiment %s runs in process %d", self._manager.folder.experiment_id, os.getpid())
            _log.info("experiment %s is %s", self._manager.folder.experiment_id, await running)
        except (ExecutorError, StoreError) as error:
            self._has_executor = not isinstance(error, ExecutorError)
            self._note_failure(str(error))
        except Exception as error:  # noqa: BLE001  (whatever it is, it must be written down)
            _log.exception("the manager failed")
            self._note_failure(f"the manager failed: {type(error).__name__}: {error}")

    def _on_tick(self) -> None:
        runner = self._manager.runner
        if self.on_running is not None and runner is not None and runner.status != "INITIALIZED":
            on_running, self.on_running = self.on_running, None
            on_running()

    async def _sample(self) -> None:
        while True:
            self._display.update(self._meter.read(time.time()))
            await asyncio.sleep(_SAMPLE)

    def _note_failure(self, reason: str) -> None:
        self._error = reason
        try:
            self._manager.store.set_status(ExperimentStatus.ERROR.value, reason)
        except StoreError as error:
            _log.error("that the experiment failed could not be written: %s", error)

    def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the loop without waiting for threads that hang (in a connection to a cluster, say)."""
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    # ------------------------------------------------------------------ being stopped

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals == 1:
            self._display.message(
                "stopping: trials get their grace, results are kept; Ctrl-C again kills them"
            )
            self._stop(self._manager.stop, "interrupted")
        elif self._signals == 2:
            self._display.message("killing everything")
            self._kill()

    def _stop(self, stop: Callable[[str], None], reason: str) -> None:
        if self._stop_asked:
            return
        self._stop_asked = True
        stop(reason)
        patience = self._manager.config.kill_grace + _STOP_PATIENCE
        asyncio.get_running_loop().call_later(patience, self._kill)

    def _kill(self) -> None:
        """Nothing gets grace any more; if even that does not end the manager, the process ends itself."""
        self._deadline.start(_KILL_PATIENCE)
        self._manager.executor.expect_losses()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._kill_processes, args=(loop,), daemon=True).start()

    def _kill_processes(self, loop: asyncio.AbstractEventLoop) -> None:
        kill_descendants()
        try:
            _in_loop(loop, self._manager.kill)  # agents elsewhere are not our descendants
        except RuntimeError:
            return  # the loop is closed: the manager has ended

    def _write_last_words(self) -> None:
        # The manager's connection belongs to its thread.
        store = Store.open(self._manager.folder.database)
        if not ExperimentStatus(store.experiment().status).is_final:
            store.set_status(ExperimentStatus.STOPPED.value, "interrupted and killed")

    # ------------------------------------------------------------------ being asked

    def _operations(self) -> dict[str, Any]:
        changes = LiveChanges(self._manager).operations()
        read_file = partial(tell_part, self._manager)
        return {**changes, "status": self._tell_status, "stop": self._stop_for_user, "read_file": read_file}

    def _tell_status(self, _request: dict[str, Any]) -> dict[str, Any]:
        progress = self._meter.read(time.time())
        runner = self._manager.runner
        waiting = (
            {} if runner is None else {t.trial_id: runner.why_waiting(t) for t in list(runner.waiting)[:100]}
        )
        return {
            "pid": os.getpid(),
            "status": progress.status,
            "elapsed": progress.elapsed,
            "rate": progress.rate,
            "remaining": progress.remaining,
            "is_bound": progress.is_bound,
            "waiting": waiting,
            "troubles": progress.troubles,
        }

    def _stop_for_user(self, request: dict[str, Any]) -> dict[str, Any]:
        self._stop(self._manager.stop_now, str(request.get("reason") or _BY_USER))
        return {}


def _in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(callback)
