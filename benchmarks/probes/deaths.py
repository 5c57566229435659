"""Notes to the millisecond when processes end, whether or not they are children (Linux)."""

from __future__ import annotations

import os
import select
import statistics
import threading
import time
from pathlib import Path

__all__ = ["Deaths"]


class Deaths(threading.Thread):
    """Reads lines `PID` (a process to watch) and `PID TIME` (when it reported) from a pipe in this folder.

    The pipe's path is in the environment variable BENCHMARK_PIPE.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        path = Path.cwd() / "reports.pipe"
        os.mkfifo(path)
        os.environ["BENCHMARK_PIPE"] = str(path)
        self._pipe = os.open(path, os.O_RDWR)
        self._pids: dict[int, int] = {}
        self._reported: dict[int, float] = {}
        self.delays: list[float] = []
        self.start()

    def median(self) -> float:
        """Return the median of the seconds from a report to the end of its process."""
        return statistics.median(self.delays)

    def run(self) -> None:
        """Watch."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                now = time.time()
                if fd == self._pipe:
                    self._read(poll)
                else:
                    poll.unregister(fd)
                    os.close(fd)
                    self.delays.append(now - self._reported[self._pids.pop(fd)])

    def _read(self, poll: select.poll) -> None:
        for line in os.read(self._pipe, 4096).decode().splitlines():
            pid, _, reported = line.partition(" ")
            if reported:
                self._reported[int(pid)] = float(reported)
                continue
            fd = os.pidfd_open(int(pid))
            self._pids[fd] = int(pid)
            poll.register(fd, select.POLLIN)
