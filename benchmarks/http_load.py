"""What 50 API clients cost a running experiment of 10,000 trials, and how long they wait.

    .venv/bin/python benchmarks/http_load.py
    .venv/bin/python benchmarks/http_load.py --clients 200 --interval 0.2 --seconds 60

The manager runs 32 simulated trials at a time, which report 10 results a second each, in real time. It is watched
for some seconds alone, and then with the server and its clients in their own processes. For both it prints how long a
turn of the manager's loop took (the whole tick: events, commit, effects) and how late the loop was; and how long the
API took to reply. On a small machine all of them share the processors, so turns are interrupted more often: compare
the processor time of a turn, which is also printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from synthetic_experiment import make

from pitchpipe.executors.trial_executor import Deliver, RunSetup, TrialExecutor
from pitchpipe.manager.control.extension import Extension, extend_experiment
from pitchpipe.manager.experiment_factory import resume_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AttemptEnded, AttemptStarted, Reported
from pitchpipe.runner.ledger import Totals
from pitchpipe.server.process import ServerProcess

RESULTS = 10
TRIAL_SECONDS = 1.0
BEAT = 0.02
ASKED = (
    "",
    "/trials?sort=value&descending=true&limit=100",
    "/trials?search=9&sort=parameters.lr&limit=100",
    "/best?count=10",
    "/events?since={cursor}",
    "/curves?points=50",
)


class PacedExecutor(TrialExecutor):
    """Simulated trials that take real time."""

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        self._deliver = deliver
        self._clock = setup.clock
        self._loop = asyncio.get_running_loop()
        return Totals()

    async def attach(self, orders: Sequence[AttemptOrder]) -> None:
        pass

    def start_trial(self, order: AttemptOrder) -> None:
        who = order.trial_id, order.attempt
        self._deliver([AttemptStarted(self._clock(), *who, 1)])
        for number in range(RESULTS):
            self._loop.call_later(TRIAL_SECONDS * (number + 1) / RESULTS, self._report, who, number)

    def _report(self, who: tuple[str, int], number: int) -> None:
        now, value = self._clock(), repr(0.1 * number + hash(who) % 1000 / 1e4)
        self._deliver([Reported(now, *who, kind="intermediate", sequence=number, value=value)])
        if number == RESULTS - 1:
            final = Reported(now, *who, kind="final", sequence=0, value=value)
            self._deliver([final, AttemptEnded(now, *who, exit_code=0)])

    def stop_trial(self, trial_id: str, attempt: int) -> None:
        self._deliver([AttemptEnded(self._clock(), trial_id, attempt, signal=15, killed=True)])

    def acknowledge(self) -> None:
        pass

    async def read_file(self, order: AttemptOrder, name: str, offset: int, limit: int) -> bytes:
        return b""

    async def close(self) -> None:
        pass


class Watch:
    """How long the turns of a manager's loop take, and how late it is."""

    def __init__(self, manager: Manager) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []
        self.late: list[float] = []
        self._step = manager.step
        manager.step = self._timed  # type: ignore[method-assign]

    def _timed(self) -> None:
        wall, processor = time.perf_counter(), time.thread_time()
        self._step()
        self.wall.append(time.perf_counter() - wall)
        self.processor.append(time.thread_time() - processor)

    async def watch(self, seconds: float) -> dict[str, list[float]]:
        """Watch for some seconds; return the durations seen, in seconds."""
        for seen in (self.wall, self.processor, self.late):
            seen.clear()
        end = time.perf_counter() + seconds
        while (due := time.perf_counter() + BEAT) < end:
            await asyncio.sleep(BEAT)
            self.late.append(time.perf_counter() - due)
        return {"tick": [*self.wall], "tick, processor": [*self.processor], "loop late": [*self.late]}


async def client(url: str, experiment: str, number: int, interval: float, seconds: float) -> list[float]:
    """Send requests over one connection; return how long each reply took."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    took, cursor = [], ""
    await asyncio.sleep(interval * number / 50)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        path = ASKED[(number + len(took)) % len(ASKED)].replace("{cursor}", cursor)
        begin = time.perf_counter()
        head = f"GET /api/v1/experiments/{experiment}{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(head.encode())
        reply = (await reader.readuntil(b"\r\n\r\n")).decode()
        if not reply.startswith("HTTP/1.1 200"):
            raise RuntimeError(reply)
        length = next(line for line in reply.splitlines() if line.lower().startswith("content-length"))
        body = await reader.readexactly(int(length.split(":")[1]))
        took.append(time.perf_counter() - begin)
        if path.startswith("/events"):
            cursor = json.loads(body)["cursor"]
        await asyncio.sleep(interval)
    writer.close()
    return took


async def clients(options: argparse.Namespace) -> None:
    """Run all clients in this process; print how long their replies took as JSON."""
    asking = (
        client(options.url, options.experiment, number, options.interval, options.seconds)
        for number in range(options.clients)
    )
    print(json.dumps([each for took in await asyncio.gather(*asking) for each in took]))


async def watched(manager: Manager, options: argparse.Namespace) -> dict[str, Any]:
    """Watch the manager alone, and then with the clients."""
    watch = Watch(manager)
    running = asyncio.ensure_future(manager.run())
    await watch.watch(options.warm_up)
    alone = await watch.watch(options.seconds)
    folder = manager.folder
    with ServerProcess(folder.path.parent, folder.experiment_id, pages=False) as server:
        url = await asyncio.to_thread(server.url)
        command = [sys.executable, __file__, "--url", url, "--experiment", folder.experiment_id]
        for name in ("clients", "interval", "seconds"):
            command += [f"--{name}", str(getattr(options, name))]
        asking = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output_read = asyncio.ensure_future(asking.communicate())
        watching = await watch.watch(options.seconds)
        output, _ = await output_read
    trials = manager.runner.created if manager.runner is not None else 0
    log = folder.path / "experiment.db-wal"
    size = log.stat().st_size if log.exists() else 0
    manager.stop()
    await running
    found = {"alone": alone, "with clients": watching, "api": json.loads(output)}
    return {**found, "trials": trials, "log": size}


def line(name: str, seconds: Sequence[float]) -> str:
    """Format median, 99th percentile and maximum in milliseconds."""
    if len(seconds) < 2:
        return f"{name:34} too few"
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    shown = " ".join(f"{1e3 * value:9.2f}" for value in (cuts[49], cuts[98], max(seconds)))
    return f"{name:34} {shown} {len(seconds):9}"


def main() -> None:
    """Measure, and print the table."""
    options = _options()
    if options.url:
        asyncio.run(clients(options))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = make(Path(place), options.trials, RESULTS)
        extend_experiment(folder, Extension(max_trial_number=10**7))
        manager = resume_experiment(folder, executor=PacedExecutor())
        try:
            found = asyncio.run(watched(manager, options))
        finally:
            manager.store.close()
            folder.disown()
    asked = len(found["api"]) / options.seconds
    print(f"{options.clients} clients, {asked:.0f} requests/s, {found['trials']} trials at the end")
    print(f"{'milliseconds':34} {'median':>9} {'p99':>9} {'max':>9} {'number':>9}")
    for when in ("alone", "with clients"):
        for name, seconds in found[when].items():
            print(line(f"{name}, {when}", seconds))
    print(line("a reply of the API", found["api"]))
    # It cannot be folded back into the database while there is always a reader.
    print(f"the database's write-ahead log has {found['log'] / 2**20:.1f} MiB")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=10_000, help="trials at the beginning")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument(
        "--interval", type=float, default=1.0, help="seconds between a reply and the next request"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--warm-up", type=float, default=3.0)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--experiment", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
