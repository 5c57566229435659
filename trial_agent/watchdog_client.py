"""The agent's side of the watchdog: starts it before the first command trial and informs it of what runs."""

from __future__ import annotations

import os
import subprocess
import sys

from . import watchdog
from .environ import base_environment


class WatchdogClient:
    """Ties the processes of the current attempt to the life of this process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: set[int] = set()

    def expect(self, mark: bytes) -> None:
        """Announce, before the start, the mark of the attempt's processes."""
        line = b"+ " + mark.hex().encode()
        if not self._tell(line):  # the first trial, or the watchdog was killed
            self.close()
            self._process = _start()
            for group in self._kept:
                self._tell(b"keep %d" % group)
            self._tell(line)

    def watch(self, group: int) -> None:
        """Announce the attempt's process group."""
        self._tell(b"group %d" % group)

    def release(self) -> None:
        """Announce that the attempt is over."""
        self._tell(b"-")

    def keep(self, group: int) -> None:
        """Tie a process group that outlives attempts."""
        self._kept.add(group)
        self._tell(b"keep %d" % group)

    def drop(self, group: int) -> None:
        """Untie a process group that has ended."""
        self._kept.discard(group)
        self._tell(b"drop %d" % group)

    def close(self) -> None:
        """End the watchdog; what it still guards is killed."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _tell(self, line: bytes) -> bool:
        """Send a line to the watchdog; return whether there is one."""
        if self._process is None or self._process.stdin is None or self._process.poll() is not None:
            return False
        try:
            os.write(self._process.stdin.fileno(), line + b"\n")
        except BrokenPipeError:
            return False
        return True


def _start() -> subprocess.Popen[bytes]:
    """Start the watchdog where no signal to the agent's group, or to an outer trial, reaches it."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", watchdog.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env=base_environment(os.environ),
        bufsize=0,
    )
