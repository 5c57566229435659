"""The processes of one attempt: its process group, and all others that carry its mark in the environment.

On Linux they are read from /proc and watched through pidfds, which a reused pid cannot confuse; elsewhere psutil finds
them. A watchdog, a process of its own, ends them when their agent dies.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from . import watchdog
from .environ import base_environment
from .watchdog import command_of, each_process, environment_of, stat_of

if TYPE_CHECKING:
    import psutil

_T = TypeVar("_T")
LINUX = sys.platform.startswith("linux")
_POLL_ELSEWHERE = 0.05  # seconds between checks where the system does not notify us that a process ended


class ProcessTree:
    """All processes of an attempt: the members of a process group and every process that carries the mark.

    A descendant with a session of its own has left the group, but still carries the mark. Without a group, these are
    all processes that carry the mark.
    """

    def __init__(self, group: int | None, mark: bytes) -> None:
        self.group = group
        self._mark = mark

    def members(self) -> list[int]:
        """Return the pids that still run (zombies do not)."""
        others = (pid for pid in each_process(_all_pids) if pid != os.getpid())
        return [pid for pid in others if self._owns(pid) and not is_zombie(pid)]

    def signal_group(self, number: int) -> None:
        """Signal the process group only, at once, without looking for processes that left it."""
        if self.group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter for zombies, on macOS
                os.killpg(self.group, number)

    def signal_orphans(self, number: int) -> None:
        """Signal the members that left the group."""
        for pid in self.members():
            if _group_of(pid) != self.group:
                _signal_one(pid, number)

    def kill(self, deadline: float) -> list[int]:
        """Wait until `deadline` (monotonic) for all members to end, then SIGKILL; return those alive 5 s later.

        Searches again until no member is found, which also finds a child forked meanwhile.
        """
        while members := self.members():
            if time.monotonic() >= deadline + 5.0:
                return members
            if time.monotonic() >= deadline:
                self.signal_group(signal.SIGKILL)
                for pid in members:
                    _signal_one(pid, signal.SIGKILL)
                _wait_for_any(members, 0.5)
            else:
                _wait_for_any(members, deadline - time.monotonic())
        return []

    def memory(self) -> int:
        """Return the resident bytes of all members."""
        return sum(resident_bytes(pid) for pid in self.members())

    def proportional_memory(self) -> int:
        """Return the bytes of all members, with shared pages counted once (slow); resident bytes where unknown."""
        return sum(proportional_bytes(pid) for pid in self.members())

    def _owns(self, pid: int) -> bool:
        return (self.group is not None and _group_of(pid) == self.group) or carries(pid, self._mark)


class WatchdogClient:
    """Ties the processes of the current attempt to the life of this process; the first one starts the watchdog."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: set[int] = set()

    def expect(self, mark: bytes) -> None:
        """Announce, before the start, the mark of the attempt's processes."""
        line = b"+ " + mark.hex().encode()
        if not self._tell(line):  # the first trial, or the watchdog was killed
            self.close()
            self._process = _start_watchdog()
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


def _start_watchdog() -> subprocess.Popen[bytes]:
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


def carries(pid: int, mark: bytes) -> bool:
    """Return whether a process was started with this entry, NAME=VALUE, in its environment.

    In the middle of an exec a process has no environment; then it is read again. A zombie has none.

    >>> carries(os.getpid(), b"PATH=/no/such/path")
    False
    """
    return b"\0" + mark + b"\0" in _environment_of(pid)


def command_words(pid: int) -> list[str]:
    """Return the words of a process's command line; none if it is gone, a zombie, or another user's.

    In the middle of an exec a process has none; then it is read again.

    >>> command_words(os.getpid()) != []
    True
    """
    if not LINUX:
        return _of_psutil(pid, lambda process: process.cmdline(), [])
    line = command_of(pid)
    return [os.fsdecode(word) for word in line.removesuffix(b"\0").split(b"\0")] if line else []


def is_zombie(pid: int) -> bool:
    """Return whether a process has ended (or is gone) though its pid may still be listed."""
    if not LINUX:
        return _of_psutil(pid, lambda process: process.status() == "zombie", True)
    stat = stat_of(pid)
    return not stat or stat[0] in (b"Z", b"X")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of one process; 0 when it is gone.

    >>> resident_bytes(os.getpid()) > 1_000_000
    True
    """
    if not LINUX:
        return _of_psutil(pid, lambda process: process.memory_info().rss, 0)
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Return the memory of one process, pages shared by n processes counted as 1/n; 0 when it is gone.

    >>> 0 < proportional_bytes(os.getpid()) <= resident_bytes(os.getpid()) * 1.5
    True
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return resident_bytes(pid)


def _of_psutil(pid: int, read: Callable[[psutil.Process], _T], otherwise: _T) -> _T:
    """Return what psutil says of a process; `otherwise` if it is gone, or another user's."""
    import psutil

    try:
        return read(psutil.Process(pid))
    except psutil.Error:
        return otherwise


def _all_pids() -> list[int]:
    if LINUX:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    import psutil

    return psutil.pids()


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _environment_of(pid: int) -> bytes:
    """Return the environment with which a process started, as NUL-ended entries after a leading NUL."""
    if LINUX:
        return environment_of(pid)
    variables = _of_psutil(pid, lambda process: process.environ(), {})
    return b"\0" + b"".join(os.fsencode(f"{name}={value}\0") for name, value in variables.items())


def _signal_one(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _wait_for_any(pids: Sequence[int], timeout: float) -> None:
    """Wait until one of the processes has ended, at most `timeout` seconds."""
    if not hasattr(os, "pidfd_open"):
        time.sleep(min(timeout, _POLL_ELSEWHERE))
        return
    poll = select.poll()
    descriptors: list[int] = []
    try:
        for pid in pids:
            try:
                descriptors.append(os.pidfd_open(pid))
            except ProcessLookupError:
                return
            except OSError:  # out of descriptors: watch those that fit
                break
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        poll.poll(max(1, int(timeout * 1000)) if descriptors else 50)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def oom_kills(path: str = "/proc/vmstat") -> int:
    """Return how many processes this machine's kernel has killed for lack of memory; 0 where it does not count.

    A trial that Pitchpipe did not kill, but that got SIGKILL while this number grew, was one of them.

    >>> oom_kills() >= 0, oom_kills("/no/such/file")
    (True, 0)
    """
    try:
        with open(path, "rb") as file:
            counts = dict(line.split() for line in file)
        return int(counts[b"oom_kill"])
    except (OSError, ValueError, KeyError):
        return 0
