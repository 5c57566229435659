"""A small process beside each agent: when the agent dies, even by SIGKILL, it kills the agent's trial.

It runs by path as `python -I -S watchdog.py`, with the standard library only. Standard input is a pipe from the
agent:

    + HEX       an attempt starts; its processes carry this environment entry
    group N     its process group
    -           it is over
    keep N      another process group of the agent, until
    drop N

End of file means that the agent is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator

ROUNDS = 5  # a child forked during the search is found in the next round
_READS = 300
_PAUSE = 0.001  # seconds between two of them: no event says that a process has a new environment
_STATE, _FLAGS, _CODE, _ARG_START, _ENV_START = 0, 6, 23, 45, 47  # fields of /proc/PID/stat after the name
_KERNEL_THREAD = 0x200000


def kill_all(group: int | None, mark: bytes | None) -> None:
    """Kill the process group and every process that carries the mark."""
    for _ in range(ROUNDS):
        if group is not None:
            _kill(os.killpg, group)
        pids = [] if mark is None else marked(mark)
        for pid in pids:
            _kill(os.kill, pid)
        if not pids:
            return


def _kill(kill: Callable[[int, int], None], target: int) -> None:
    try:
        kill(target, signal.SIGKILL)
    except OSError:
        pass


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:  # not Linux: the process group has to be enough
        return []


def each_process(pids: Callable[[], list[int]]) -> Iterator[int]:
    """Yield all pids, also of children forked meanwhile, whose parents may be gone before they are looked at."""
    seen: set[int] = set()
    for _ in range(ROUNDS):
        new = set(pids()) - seen
        if not new:
            return
        seen |= new
        yield from new


def marked(mark: bytes) -> list[int]:
    """Return the processes whose environment holds the mark."""
    return [pid for pid in each_process(_pids) if b"\0" + mark + b"\0" in environment_of(pid)]


def environment_of(pid: int) -> bytes:
    """Return the environment with which a process started, as NUL-ended entries after a leading NUL."""
    return b"\0" + _settled(pid, "environ", _ENV_START)


def command_of(pid: int) -> bytes:
    """Return the command line of a process, as NUL-ended words; none if it is gone or a zombie."""
    return _settled(pid, "cmdline", _ARG_START)


def _settled(pid: int, name: str, start: int) -> bytes:
    """Return a file of /proc/PID; `start` is the field that says where its content begins.

    It is empty for a moment while the process starts another program, or ends: it is read again.
    """
    for _ in range(_READS):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                content = file.read()
        except ProcessLookupError:
            content = b""
        except OSError:  # gone, or another user's
            break
        if content or not _is_changing(pid, start):
            return content
        time.sleep(_PAUSE)
    return b""


def _is_changing(pid: int, start: int) -> bool:
    """Return whether a process that has nothing there will have something, or be a zombie, in a moment."""
    stat = stat_of(pid)
    if not stat or stat[_STATE] in (b"Z", b"X") or int(stat[_FLAGS]) & _KERNEL_THREAD:
        return False
    return stat[_CODE] == b"0" or stat[start] != stat[start + 1]  # the kernel sets the code last


def stat_of(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the name, from the state on; none if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def main() -> None:
    """Follow the agent's messages until its end of the pipe closes, then kill what it left."""
    group: int | None = None
    mark: bytes | None = None
    kept: set[int] = set()
    for line in sys.stdin.buffer:
        word, *rest = line.split()
        if word == b"+":
            group, mark = None, bytes.fromhex(rest[0].decode())
        elif word == b"group":
            group = int(rest[0])
        elif word == b"keep":
            kept.add(int(rest[0]))
        elif word == b"drop":
            kept.discard(int(rest[0]))
        else:
            group, mark = None, None
    for each in kept:
        _kill(os.killpg, each)
    kill_all(group, mark)


if __name__ == "__main__":
    main()
