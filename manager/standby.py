"""Spawning dispatchers, and a standby that imports its libraries before there is an experiment for it.

`pitchpipe run` imports this module before all that `dispatcher_link` needs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# The child finds its pipes as file descriptors 3 and 4; ours are kept above, so that neither is overwritten.
_FIRST_FD = 10

# The command line of our dispatcher; its configuration is in its environment.
DISPATCHER_COMMAND = (sys.executable, "-P", "-m", "pitchpipe.dispatcher")


class SpawnedDispatcher(NamedTuple):
    """A process, and our ends of its pipes."""

    pid: int
    reads: int
    writes: int


def spawn(
    command: Sequence[str], environment: Mapping[str, str], actions: Sequence[Any]
) -> SpawnedDispatcher:
    """Spawn a dispatcher in a session of its own; `actions` open its descriptors 0 to 2."""
    child_reads, we_write = _pipe()
    we_read, child_writes = _pipe()
    pipes = [(os.POSIX_SPAWN_DUP2, child_reads, 3), (os.POSIX_SPAWN_DUP2, child_writes, 4)]
    try:
        every = [*pipes, *actions]
        pid = os.posix_spawnp(command[0], list(command), environment, file_actions=every, setsid=True)
    finally:
        os.close(child_reads)
        os.close(child_writes)
    return SpawnedDispatcher(pid, we_read, we_write)


def inherited_environment() -> dict[str, str]:
    """Return the environment of this process, for a dispatcher."""
    # Suggestions are small sums: threads that wait for each other on a busy machine cost more than they save.
    return {"OPENBLAS_NUM_THREADS": "1", **os.environ}


class StandbyDispatcher:
    """A dispatcher that waits for its experiment with its libraries imported; it ends with this process."""

    def __init__(self) -> None:
        its_end, self._word = _pipe()
        os.set_blocking(self._word, False)
        self._spawned: SpawnedDispatcher | None
        try:
            nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
            self._spawned = spawn(
                (*DISPATCHER_COMMAND, "--standby"),
                inherited_environment(),
                [(os.POSIX_SPAWN_DUP2, its_end, 0), *nowhere],
            )
        finally:
            os.close(its_end)

    @property
    def pid(self) -> int | None:
        """The process id; None once it is taken or has ended."""
        return None if self._spawned is None else self._spawned.pid

    def take(self, environment: Mapping[str, str], output: Path) -> SpawnedDispatcher | None:
        """Have it serve with this environment and print to a file; return None if it no longer can."""
        if self._spawned is None:
            return None
        word = json.dumps({"environment": dict(environment), "output": str(output)}).encode()
        with contextlib.suppress(OSError):  # it has ended, or has no room for so much
            if os.write(self._word, word) == len(word):
                os.close(self._word)
                spawned, self._spawned = self._spawned, None
                return spawned
        self.close()
        return None

    def close(self) -> None:
        """End it, unless it serves."""
        if self._spawned is None:
            return
        (pid, *pipes), self._spawned = self._spawned, None
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for descriptor in (self._word, *pipes):
            os.close(descriptor)


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends have higher numbers than those the child expects."""
    ends = os.pipe()
    lifted = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FIRST_FD) for end in ends]
    for end in ends:
        os.close(end)
    return lifted[0], lifted[1]
