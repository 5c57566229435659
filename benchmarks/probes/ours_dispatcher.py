"""The dispatcher process alone, driven over its two pipes."""

from __future__ import annotations

import fcntl
import os
import statistics
import threading
import time
from pathlib import Path

from harness import SPACE, answer, options

from pitchpipe.manager.dispatcher_link.dispatcher_process import dispatcher_environment
from pitchpipe.manager.standby import DISPATCHER_COMMAND
from pitchpipe.protocol import CommandType, Frame, FrameDecoder, dumps, encode_frame, loads, metric_payload

CONFIG = {"tuner": {"name": "Random"}, "assessor": {"name": "Medianstop"}, "seed": 1}
STEPS = 500


class Dispatcher:
    """A dispatcher process, and the manager's ends of its pipes."""

    def __init__(self) -> None:
        child_reads, self._write = _pipe()
        self._read, child_writes = _pipe()
        (Path.cwd() / "logs").mkdir()
        environment = dispatcher_environment(CONFIG, Path.cwd(), mode="start", log_level="info")
        actions = [(os.POSIX_SPAWN_DUP2, child_reads, 3), (os.POSIX_SPAWN_DUP2, child_writes, 4)]
        self.pid = os.posix_spawn(
            DISPATCHER_COMMAND[0], DISPATCHER_COMMAND, environment, file_actions=actions
        )
        os.close(child_reads)
        os.close(child_writes)
        self._decoder = FrameDecoder()

    def write(self, data: bytes) -> None:
        """Write all of it."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._write, view) :]

    def send(self, command: CommandType, payload: str = "") -> None:
        """Send one command."""
        self.write(encode_frame(command, payload))

    def receive(self) -> list[Frame]:
        """Wait for the next frames."""
        data = os.read(self._read, 1 << 18)
        if not data:
            raise SystemExit("the dispatcher has ended")
        return self._decoder.feed(data)

    def wait_for(self, command: CommandType) -> None:
        """Read until a frame with this command has come."""
        while all(frame.command is not command for frame in self.receive()):
            pass

    def wait_processed(self, queue: str, number: int) -> None:
        """Read until the commands of a queue up to this number are done."""
        while True:
            for frame in self.receive():
                if frame.command is CommandType.Processed:
                    processed = loads(frame.payload)
                    if processed["queue"] == queue and processed["n"] >= number:
                        return


def _pipe() -> tuple[int, int]:
    """Make a pipe whose descriptors are not those that the child expects."""
    ends = os.pipe()
    lifted = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return lifted[0], lifted[1]


def round_trips(dispatcher: Dispatcher, number: int) -> float:
    """Return the median of the seconds from a request for a trial to the trial."""
    times = []
    for _ in range(number):
        began = time.perf_counter()
        dispatcher.send(CommandType.RequestTrialJobs, "1")
        dispatcher.wait_for(CommandType.NewTrialJob)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def frames_per_second(dispatcher: Dispatcher, number: int, sent: int) -> float:
    """Return the intermediate results per second, from the first byte to the last verdict."""
    frames = []
    for index in range(number):
        trial, step = divmod(index, STEPS)
        payload = metric_payload(trial, f"trial{trial}", "PERIODICAL", step, repr(step / 7))
        frames.append(encode_frame(CommandType.ReportMetricData, payload))
    data = b"".join(frames)
    began = time.perf_counter()
    threading.Thread(target=dispatcher.write, args=(data,), daemon=True).start()
    dispatcher.wait_processed("assessor", sent + number)
    return number / (time.perf_counter() - began)


chosen = options()
requests = max(200, chosen.size // 20)
dispatcher = Dispatcher()
dispatcher.send(CommandType.Initialize, dumps(SPACE))
dispatcher.wait_for(CommandType.Initialized)
round_trips(dispatcher, 100)
round_trip = round_trips(dispatcher, requests)
answer(round_trip=round_trip, frames_per_second=frames_per_second(dispatcher, chosen.size, 101 + requests))
dispatcher.send(CommandType.Terminate)
os.waitpid(dispatcher.pid, 0)
