"""Runs a manager in this process: its event loop, signals, the display, and the end of what hangs."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable

from ..executors import ExecutorError
from ..manager import Manager
from ..manager.control import RunningManager, why_failed
from ..runner import ExperimentStatus
from ..store import Store
from .display import Display, ProgressMeter
from .failures import INTERRUPTED
from .interrupts import Interrupts, kill_descendants

_SAMPLE = 0.25
# A stopped experiment gets this long after the grace of its trials; then its processes are killed.
_STOP_PATIENCE = 4.0
_KILL_PATIENCE = 3.0


class RunningExperiment:
    """One run of one manager; signals must be held already.

    `on_running` is called once, when trials can run. `error` is why the experiment could not run at all (empty if it
    could), and `has_executor` is whether the executor could be reached.
    """

    def __init__(
        self,
        manager: Manager,
        display: Display,
        interrupts: Interrupts,
        on_running: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_running = on_running
        self._is_running = False
        self._manager = manager
        self._display = display
        self._interrupts = interrupts
        self._meter = ProgressMeter(manager)
        self._signals = 0
        self._deadline: threading.Timer | None = None
        self.error = ""
        self.has_executor = True

    def run(self) -> bool:
        """Run the experiment to its end; return True if a signal stopped it."""
        try:
            with self._display:
                self._run_loop()
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
            self._manager.store.close()
            self._manager.folder.disown()
        return self._signals > 0

    def _run_loop(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._main())
        finally:
            self._close(loop)

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        self._manager.watch(self._after_turn)
        async with RunningManager(
            self._manager, warn=self._display.message, on_stop=self._limit_patience
        ) as host:
            sampling = loop.create_task(self._sample())
            with self._interrupts.notifying(lambda: loop.call_soon_threadsafe(self._on_signal, host)):
                await self._outcome(host)
        sampling.cancel()
        self._display.update(self._meter.read(time.time()))

    async def _outcome(self, host: RunningManager) -> None:
        """Wait for the end; a failure is logged and stored already, and becomes the exit code."""
        try:
            await host.wait()
        except Exception as error:  # noqa: BLE001  (every error is shown)
            self.has_executor = not isinstance(error, ExecutorError)
            self.error = why_failed(error)

    def _after_turn(self) -> None:
        runner = self._manager.runner
        if not self._is_running and runner is not None and runner.status != "INITIALIZED":
            self._is_running = True
            self._on_running()

    async def _sample(self) -> None:
        while True:
            self._display.update(self._meter.read(time.time()))
            await asyncio.sleep(_SAMPLE)

    def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the loop without waiting for threads that hang (in a connection to a cluster, say)."""
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    def _on_signal(self, host: RunningManager) -> None:
        self._signals += 1
        if self._signals == 1:
            self._display.message(
                "stopping: trials get their grace, results are kept; Ctrl-C again kills them"
            )
            host.stop("interrupted")
        elif self._signals == 2:
            self._display.message("killing everything")
            self._kill()

    def _limit_patience(self) -> None:
        patience = self._manager.config.kill_grace + _STOP_PATIENCE
        asyncio.get_running_loop().call_later(patience, self._kill)

    def _kill(self) -> None:
        """End everything without grace; if the manager still does not end, this process ends itself."""
        if self._deadline is None:
            self._deadline = threading.Timer(_KILL_PATIENCE, self._end_process)
            self._deadline.daemon = True
            self._deadline.start()
        self._manager.executor.expect_losses()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._kill_processes, args=(loop,), daemon=True).start()

    def _kill_processes(self, loop: asyncio.AbstractEventLoop) -> None:
        kill_descendants()
        try:
            loop.call_soon_threadsafe(self._manager.kill)  # agents on other machines are not descendants
        except RuntimeError:
            return  # the loop is closed: the manager has ended

    def _end_process(self) -> None:
        kill_descendants()
        try:
            # The manager's connection to the store belongs to the thread of its loop, which hangs.
            store = Store.open(self._manager.folder.database)
            if not ExperimentStatus(store.experiment().status).is_final:
                store.set_status(ExperimentStatus.STOPPED.value, "interrupted and killed")
        finally:
            os._exit(INTERRUPTED)
