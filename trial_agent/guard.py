"""The agent's side of the watchdog: starts it before the first command trial and tells it what runs."""

from __future__ import annotations

import os
import subprocess
import sys

from . import watchdog
from .environ import base_environment

__all__ = ["Guard"]


class Guard:
    """Ties the processes of the present attempt to the life of this process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def expect(self, mark: bytes) -> None:
        """Say, before it is started, by which mark the attempt's processes will be known."""
        line = b"+ " + mark.hex().encode()
        if not self._tell(line):  # the first trial, or somebody killed the watchdog
            self.close()
            self._process = _start()
            self._tell(line)

    def watch(self, group: int) -> None:
        """Say in which process group the attempt runs."""
        self._tell(b"group %d" % group)

    def release(self) -> None:
        """Say that the attempt is over."""
        self._tell(b"-")

    def close(self) -> None:
        """End the watchdog; what it still guards is killed."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _tell(self, line: bytes) -> bool:
        """Say something to the watchdog, and return whether there is one."""
        if self._process is None or self._process.stdin is None or self._process.poll() is not None:
            return False
        try:
            os.write(self._process.stdin.fileno(), line + b"\n")
        except BrokenPipeError:
            return False
        return True


def _start() -> subprocess.Popen[bytes]:
    """Start the watchdog where nothing meant for the agent's group, or for an outer trial, reaches it."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", watchdog.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env=base_environment(os.environ),
        bufsize=0,
    )
