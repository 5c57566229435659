"""A dispatcher on a thread of the test's process: the same frames through the same pipes, without a new interpreter.

For tests of what a manager decides. Those of what happens to the process, or in it, let the manager spawn one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.dispatcher import check
from pitchpipe.dispatcher.channel import FdChannel
from pitchpipe.dispatcher.checkpointing import CheckpointUnusable, Saver, read_checkpoint
from pitchpipe.dispatcher.dispatcher_settings import DispatcherSettings, decode_exp_params, dispatcher_from
from pitchpipe.dispatcher.msg_dispatcher_base import Ending, MsgDispatcherBase
from pitchpipe.manager.dispatcher_link import dispatcher as manager_side
from pitchpipe.manager.dispatcher_link.dispatcher_process import DispatcherProcess, _Backpressure
from pitchpipe.protocol import PARAMETERS_ENVIRONMENT, CommandType


class DispatcherThread(DispatcherProcess):
    """Takes the place of a `DispatcherProcess`; a plug-in that raises ends it, as it ends a process."""

    thread: threading.Thread | None = None

    async def start(
        self, command: Sequence[str], environment: Mapping[str, str], output: Path, standby: object = None
    ) -> None:
        its_in, we_write = os.pipe()
        we_read, its_out = os.pipe()
        channel = FdChannel(its_in, its_out)
        restored = Path(command[command.index("--restore") + 1]) if "--restore" in command else None
        self.thread = threading.Thread(target=self._serve, args=(channel, dict(environment), restored))
        self.thread.start()
        self._reader, _ = await self._loop.connect_read_pipe(lambda: self, os.fdopen(we_read, "rb", 0))
        self._writer, _ = await self._loop.connect_write_pipe(
            lambda: _Backpressure(self), os.fdopen(we_write, "wb", 0)
        )

    async def kill(self) -> None:
        self._on_end = lambda code, sentence: None
        self._close_pipes()  # it ends as if the manager was gone
        if self.thread is not None:
            await self._ended

    def _serve(self, channel: FdChannel, environment: Mapping[str, str], restored: Path | None) -> None:
        code = 1
        try:
            settings = DispatcherSettings.read(
                decode_exp_params(environment[PARAMETERS_ENVIRONMENT]), environment
            )
            dispatcher = dispatcher_from(settings, channel)
            if restored is not None:
                restore(dispatcher, restored)
            dispatcher.save_into(Saver(Path(environment["NNI_CHECKPOINT_DIRECTORY"])))
            code = 1 if dispatcher.run() is Ending.FAILED else 0
        except CheckpointUnusable as error:
            code = manager_side.CHECKPOINT_UNUSABLE
            channel.send(CommandType.Checkpoint, json.dumps({"unusable": error.why}))
            channel.flush()
        finally:
            channel.close()
            self._loop.call_soon_threadsafe(self._process_ended, code)


def restore(dispatcher: MsgDispatcherBase, path: Path) -> None:
    n, halves = read_checkpoint(path)
    try:
        dispatcher.restore(n, halves)
    except Exception as error:
        raise CheckpointUnusable(path, f"does not fit: {error!r}") from error


class CheckerHere:
    """Takes the place of the process that checks the plug-ins of a config."""

    def __enter__(self) -> CheckerHere:
        return self

    def __exit__(self, *error: object) -> None:
        """End nothing."""

    def ask(self, parameters: Mapping[str, Any], timeout: float) -> tuple[int, str, str]:
        config = json.loads(json.dumps(parameters))
        problems = [
            {"path": one.path, "message": one.message, "hint": one.hint} for one in check.check(config)
        ]
        reply = {"directions": check.directions(config), "warnings": check.warnings(config)}
        return 0, json.dumps({"problems": problems, **reply}), ""


def dispatchers_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let managers start their dispatchers on threads, and configs be checked by this one."""
    monkeypatch.setattr("pitchpipe.config.plugins.Checker", CheckerHere)
    monkeypatch.setattr(manager_side, "DispatcherProcess", DispatcherThread)
    monkeypatch.setattr(sys, "path", [*sys.path])  # plug-ins add their folders
