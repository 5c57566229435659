"""Other machines, reached by the user's own ssh: each runs `node` for one request."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
_TIMEOUT = 180.0
# Without a terminal ssh must not ask for passwords.
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=15")


class ClusterError(Exception):
    """A machine of a cluster cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """How machines are reached (`ssh`: the program and its options), and which Python has Pitchpipe there."""

    ssh: tuple[str, ...]
    python: str

    def ask(self, host: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have a machine do something and return its reply; raise `ClusterError`."""
        remote = shlex.join([self.python, "-P", "-m", f"{__package__}.node"])
        command = [*self.ssh, *_OPTIONS, host, remote]
        try:
            done = subprocess.run(
                command,
                input=json.dumps(request) + "\n",
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except FileNotFoundError as error:
            raise ClusterError(f"there is no {self.ssh[0]} here: install an ssh client") from error
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{host}: no answer after {_TIMEOUT:g} s") from error
        if done.returncode:
            raise ClusterError(f"{host}: {self._why(done)}")
        return json.loads(done.stdout.splitlines()[-1])

    def _why(self, done: subprocess.CompletedProcess[str]) -> str:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        if "No module named" in said[-1] or done.returncode == 127:
            return f"Pitchpipe is not installed for {self.python} ({said[-1]}); install it there, or give --python"
        return said[-1]


def on_each(hosts: Sequence[str], action: Callable[[str], T]) -> dict[str, T | ClusterError]:
    """Do something on all hosts at once; return the results or errors by host."""

    def attempt(host: str) -> T | ClusterError:
        try:
            return action(host)
        except ClusterError as error:
            return error

    with ThreadPoolExecutor(max_workers=32) as pool:
        return dict(zip(hosts, pool.map(attempt, hosts), strict=True))
