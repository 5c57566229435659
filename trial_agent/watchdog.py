"""A small process beside each agent: when the agent dies, even by SIGKILL, it kills the agent's trial.

It runs by path as `python -I -S watchdog.py`, with the standard library only. Standard input is a pipe from the
agent:

    + HEX       an attempt starts; its processes carry this environment entry
    group N     its process group
    -           it is over

End of file means that the agent is gone.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["ROUNDS", "kill_all", "main"]

ROUNDS = 5  # a child forked during the search is found in the next round


def kill_all(group: int | None, mark: bytes | None) -> None:
    """Kill the process group and every process whose environment holds the mark."""
    for _ in range(ROUNDS):
        if group is not None:
            _kill(os.killpg, group)
        found = [pid for pid in _pids() if mark is not None and _is_marked(pid, mark)]
        for pid in found:
            _kill(os.kill, pid)
        if not found:
            return


def _kill(kill: object, target: int) -> None:
    try:
        kill(target, signal.SIGKILL)  # type: ignore[operator]
    except OSError:
        pass


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:  # not Linux: the process group has to be enough
        return []


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + mark + b"\0" in b"\0" + file.read()
    except OSError:
        return False


def main() -> None:
    """Follow the agent's messages until its end of the pipe closes, then kill what it left."""
    group: int | None = None
    mark: bytes | None = None
    for line in sys.stdin.buffer:
        word, *rest = line.split()
        if word == b"+":
            group, mark = None, bytes.fromhex(rest[0].decode())
        elif word == b"group":
            group = int(rest[0])
        else:
            group, mark = None, None
    kill_all(group, mark)


if __name__ == "__main__":
    main()
