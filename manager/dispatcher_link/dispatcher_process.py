"""The dispatcher process: its two pipes, frames in and out, its end."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...protocol import (
    PARAMETERS_ENVIRONMENT,
    PROTOCOL_ENVIRONMENT,
    PROTOCOL_VERSION,
    CommandType,
    Config,
    Frame,
    FrameDecoder,
    ProtocolError,
    encode_frame,
)
from ...trial_agent import visible_devices
from ..standby import StandbyDispatcher, inherited_environment, spawn

_PIPE_GRACE = 1.0

# The search space comes by a command, points become trials, and the environment may hold secrets.
_LEFT_OUT = frozenset(("searchSpace", "initialPoints", "warmStart", "trialEnvironment"))


def dispatcher_environment(
    config: Config, folder: Path, *, mode: str, log_level: str, gpus: Sequence[int | str] = ()
) -> dict[str, str]:
    """Return the environment that NNI gives its dispatcher, with our protocol and the canonical `config`."""
    needed = {key: value for key, value in config.items() if key not in _LEFT_OUT}
    return {
        **inherited_environment(),
        PROTOCOL_ENVIRONMENT: str(PROTOCOL_VERSION),
        PARAMETERS_ENVIRONMENT: base64.b64encode(json.dumps(needed).encode()).decode(),
        "SDK_PROCESS": "dispatcher",
        "NNI_MODE": mode,
        "NNI_CHECKPOINT_DIRECTORY": str(folder / "checkpoint"),
        "NNI_LOG_DIRECTORY": str(folder / "logs"),
        "NNI_LOG_LEVEL": log_level,
        "NNI_INCLUDE_INTERMEDIATE_RESULTS": "false",
        **visible_devices(gpus),
    }


class DispatcherProcess(asyncio.Protocol):
    """Spawns a dispatcher, exchanges frames with it and reports its end.

    `on_frames` gets the frames as they come. `on_end(exit code, sentence)` is called once, when the process has ended
    or sends what is not a frame. Both run on the event loop's thread, and not before `listen`: on a busy machine, the
    process may say that it is ready, or end, before `start` returns.
    """

    def __init__(
        self,
        on_frames: Callable[[list[Frame]], None],
        on_end: Callable[[int, str], None],
        on_drained: Callable[[], None],
    ) -> None:
        self.pid: int | None = None
        self.is_full = False
        self.on_drained = on_drained
        self._on_frames = on_frames
        self._on_end = on_end
        self._decoder = FrameDecoder()
        self._held: list[Callable[[], None]] | None = []  # None: nothing is held back now
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._writer: asyncio.WriteTransport | None = None
        self._reader: asyncio.BaseTransport | None = None
        self._read_all: asyncio.Future[None] = self._loop.create_future()

    async def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: Path,
        standby: StandbyDispatcher | None = None,
    ) -> None:
        """Take the standby process, or spawn one; what it prints goes to the file `output`."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        taken = None if standby is None else standby.take(environment, output)
        self.pid, we_read, we_write = taken or spawn(command, environment, actions)
        threading.Thread(target=self._reap, args=(self.pid,), name="dispatcher-end", daemon=True).start()
        reads, writes = os.fdopen(we_read, "rb", 0), os.fdopen(we_write, "wb", 0)
        try:
            self._reader, _ = await self._loop.connect_read_pipe(lambda: self, reads)
            self._writer, _ = await self._loop.connect_write_pipe(lambda: _Backpressure(self), writes)
        except BaseException:
            writes.close()  # the process ends when it reads the end: nobody can tell it any more
            raise

    def listen(self) -> None:
        """Hand on what the process has said, what it says from now on, and its end."""
        held, self._held = self._held or [], None
        for tell in held:
            tell()

    def write(self, data: bytes) -> None:
        """Send encoded frames, unless the process has ended."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    async def terminate(self, timeout: float) -> None:
        """Ask the process to end; kill it after `timeout` seconds."""
        self.write(encode_frame(CommandType.Terminate))
        try:
            await asyncio.wait_for(asyncio.shield(self._ended), timeout)
        except TimeoutError:
            await self.kill()
        # Its last frames are still in the pipe; a process that a plug-in left may hold that open.
        await asyncio.wait([self._read_all], timeout=_PIPE_GRACE)
        self._close_pipes()

    async def kill(self) -> None:
        """End the process and its children at once, without a call of `on_end`."""
        self._on_end = lambda code, sentence: None
        if self.pid is not None and not self._ended.done():
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself
            await self._ended
        self._close_pipes()

    def data_received(self, data: bytes) -> None:
        """Take bytes from the dispatcher."""
        try:
            frames = self._decoder.feed(data)
        except ProtocolError as error:
            self._fail(-1, f"the dispatcher wrote what is not a frame: {error}")
            return
        if frames:
            self._tell(lambda: self._on_frames(frames))

    def _reap(self, pid: int) -> None:
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._loop.call_soon_threadsafe(self._process_ended, code)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the dispatcher closed its pipe: all its frames are read."""
        if not self._read_all.done():
            self._read_all.set_result(None)
        self._report_end()

    def _process_ended(self, code: int) -> None:
        self._ended.set_result(code)
        # The last frames in the pipe are read before the end is reported, unless a process that a plug-in left holds
        # the pipe open.
        self._loop.call_later(_PIPE_GRACE, self._report_end, True)
        self._report_end()

    def _report_end(self, although_open: bool = False) -> None:
        if self._ended.done() and (self._read_all.done() or although_open):
            code = self._ended.result()
            how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
            self._fail(code, f"the dispatcher process ended with {how}")

    def _fail(self, code: int, sentence: str) -> None:
        self._tell(lambda: self._end(code, sentence))

    def _end(self, code: int, sentence: str) -> None:
        on_end, self._on_end = self._on_end, lambda code, sentence: None
        on_end(code, sentence)

    def _tell(self, tell: Callable[[], None]) -> None:
        if self._held is None:
            tell()
        else:
            self._held.append(tell)

    def _close_pipes(self) -> None:
        for transport in (self._writer, self._reader):
            if transport is not None:
                transport.close()


class _Backpressure(asyncio.Protocol):
    """Notes when the pipe to the dispatcher is full."""

    def __init__(self, process: DispatcherProcess) -> None:
        self._process = process

    def pause_writing(self) -> None:
        self._process.is_full = True

    def resume_writing(self) -> None:
        self._process.is_full = False
        self._process.on_drained()
