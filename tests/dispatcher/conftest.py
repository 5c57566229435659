"""Hosts for dispatchers under test: one in this process, on a thread, and one in a process of its own."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.dispatcher import Ending, MemoryChannel, MsgDispatcher, MsgDispatcherBase
from pitchpipe.protocol import CommandType, Frame, FrameDecoder, dumps, encode_frame, loads

PATIENCE_S = 20.0


def encode_exp_params(config: Mapping[str, Any]) -> str:
    """Return the argument of `--exp_params` for a configuration."""
    return base64.b64encode(json.dumps(config).encode()).decode()


class Manager:
    """The manager's part, in the words that tests use; subclasses say how frames travel."""

    def send(self, command: CommandType, data: Any = None) -> None:
        raise NotImplementedError

    def receive(self) -> Frame:
        raise NotImplementedError

    def expect(self, command: CommandType) -> Any:
        """Return the payload of the next frame other than Processed, which must be this command."""
        while (frame := self.receive()).command is CommandType.Processed:
            pass
        assert frame.command is command, frame
        return loads(frame.payload) if frame.payload else None

    def processed(self, queue: str, n: int) -> list[Frame]:
        """Wait until the queue has handled command `n`; return the frames that came before."""
        frames: list[Frame] = []
        while True:
            frame = self.receive()
            if frame.command is CommandType.Processed:
                done = loads(frame.payload)
                if done["queue"] == queue and done["n"] >= n:
                    return frames
            else:
                frames.append(frame)

    def initialize(self, space: Any = None) -> Any:
        self.send(CommandType.Initialize, space or {})
        return self.expect(CommandType.Initialized)

    def request(self, count: int = 1) -> list[Any]:
        self.send(CommandType.RequestTrialJobs, count)
        return [self.expect(CommandType.NewTrialJob) for _ in range(count)]

    def metric(self, trial: str, sequence: int, value: Any, kind: str = "PERIODICAL", **more: Any) -> None:
        record = {"parameter_id": 0, "trial_job_id": trial, "type": kind, "sequence": sequence}
        self.send(CommandType.ReportMetricData, {**record, "value": dumps(value), **more})

    def final(self, parameter_id: int | None, value: Any, trial: str = "trial", **more: Any) -> None:
        self.metric(trial, 0, value, "FINAL", parameter_id=parameter_id, **more)

    def end(
        self,
        parameter_id: int | None,
        event: str = "SUCCEEDED",
        trial: str = "trial",
        kind: str | None = None,
        **record: Any,
    ) -> None:
        hyper_params = dumps({"parameter_id": parameter_id, **record})
        payload = {"trial_job_id": trial, "event": event, "hyper_params": hyper_params}
        if kind is not None:
            payload["failure_kind"] = kind
        self.send(CommandType.TrialEnd, payload)


class Hosted(Manager):
    """A dispatcher that runs on a thread of this process."""

    def __init__(self, dispatcher: MsgDispatcherBase, channel: MemoryChannel) -> None:
        self.dispatcher, self.channel = dispatcher, channel
        self.ending: Ending | None = None
        self._thread = threading.Thread(target=self._run, name="dispatcher-main", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.ending = self.dispatcher.run()

    def send(self, command: CommandType, data: Any = None) -> None:
        self.channel.deliver(command, "" if data is None else dumps(data))

    def receive(self) -> Frame:
        return self.channel.sent.get(timeout=PATIENCE_S)

    def joined(self) -> Ending | None:
        """How the dispatcher ended, waiting for it."""
        self._thread.join(PATIENCE_S)
        return self.ending

    def terminate(self) -> Ending | None:
        self.send(CommandType.Terminate)
        return self.joined()

    def rest(self) -> list[Frame]:
        """Return the frames that were sent and not received."""
        frames = []
        while not self.channel.sent.empty():
            frames.append(self.channel.sent.get())
        return frames

    def rest_of(self, command: CommandType) -> list[Any]:
        return [loads(frame.payload) for frame in self.rest() if frame.command is command]


class Spawned(Manager):
    """A dispatcher process with its pipes."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        child_in, self.out_fd = os.pipe()
        self.in_fd, child_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (child_in, child_out)]

        def place() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        with open(folder / "output", "wb") as output:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                cwd=folder,
                preexec_fn=place,
                close_fds=False,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        for fd in (child_in, child_out, *high):
            os.close(fd)
        self.folder = folder
        self._decoder = FrameDecoder()
        self._frames: list[Frame] = []
        self._open = True

    def send(self, command: CommandType, data: Any = None) -> None:
        self.send_bytes(encode_frame(command, "" if data is None else dumps(data)))

    def send_bytes(self, data: bytes) -> None:
        os.write(self.out_fd, data)

    def receive(self) -> Frame:
        while not self._frames:
            data = os.read(self.in_fd, 1 << 16)
            if not data:
                raise EOFError(f"the dispatcher ended:\n{self.output()}")
            self._frames = self._decoder.feed(data)
        return self._frames.pop(0)

    def rest(self) -> list[Frame]:
        """All frames up to the end of the stream."""
        frames = self._frames
        while data := os.read(self.in_fd, 1 << 16):
            frames += self._decoder.feed(data)
        return frames

    def output(self) -> str:
        return (self.folder / "output").read_text()

    def hang_up(self) -> None:
        """Close the pipe to the dispatcher, as a manager that dies does."""
        if self._open:
            self._open = False
            os.close(self.out_fd)

    def joined(self) -> int:
        return self.process.wait(PATIENCE_S)

    def terminate(self) -> int:
        self.send(CommandType.Terminate)
        return self.joined()

    def close(self) -> None:
        self.hang_up()
        os.close(self.in_fd)
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def host() -> Iterator[Callable[..., Hosted]]:
    """Return a function that runs a MsgDispatcher, and requests trials; by default the manager is a peer."""
    hosted: list[Hosted] = []

    def start(
        tuner: Any, assessor: Any = None, *, protocol: int | None = 1, requested: int = 0, **options: Any
    ) -> Hosted:
        channel = MemoryChannel()
        dispatcher = MsgDispatcher(tuner, assessor, channel, protocol=protocol, **options)
        hosted.append(Hosted(dispatcher, channel))
        if requested:
            hosted[-1].request(requested)
        return hosted[-1]

    yield start
    for one in hosted:
        one.channel.end()
        one.joined()


@pytest.fixture
def host_base() -> Iterator[Callable[..., Hosted]]:
    """Return the same for an existing dispatcher."""
    hosted: list[Hosted] = []

    def start(dispatcher: MsgDispatcherBase, protocol: int | None = 1) -> Hosted:
        channel = MemoryChannel()
        dispatcher.connect(channel, protocol)
        hosted.append(Hosted(dispatcher, channel))
        return hosted[-1]

    yield start
    for one in hosted:
        one.channel.end()
        one.joined()


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Callable[..., Spawned]]:
    """Return a function that starts `python -m pitchpipe.dispatcher` for a configuration."""
    spawned: list[Spawned] = []

    def start(
        config: dict[str, Any], *, peer: bool = True, command: Any = None, **environment: str
    ) -> Spawned:
        module = [sys.executable, "-m", "pitchpipe.dispatcher", "--exp_params"]
        announced = {"PITCHPIPE_PROTOCOL": "1"} if peer else {}
        one = Spawned(command or [*module, encode_exp_params(config)], {**announced, **environment}, tmp_path)
        spawned.append(one)
        return one

    yield start
    for one in spawned:
        one.close()


@pytest.fixture
def serve(spawn: Callable[..., Spawned]) -> Callable[..., Spawned]:
    """Return a function that does so and sends a search space."""

    def start(config: dict[str, Any], **options: Any) -> Spawned:
        one = spawn(config, **options)
        one.initialize({"x": {"_type": "uniform", "_value": [0, 1]}})
        return one

    return start


@pytest.fixture
def plugin_file(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return a function that writes a file of plug-ins and returns the configuration for a class in it."""

    def write(class_name: str, text: str, folder: str = "plugins") -> dict[str, str]:
        directory = tmp_path / folder
        module = class_name.rpartition(".")[0].replace(".", "/")
        file = directory / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return {"className": class_name, "codeDirectory": str(directory)}

    return write
