"""How a process becomes the parent of one that a child of its has forked (Linux only)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

__all__ = ["Adopted", "adopting", "bury"]

_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37


class Adopted:
    """An adopted process, with the part of `subprocess.Popen` that following it needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def wait(self) -> int:
        """Wait for the end and return the exit code, or the negative number of a signal."""
        if self.returncode is None:
            _, status = os.waitpid(self.pid, 0)
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Become the parent of descendants whose own parents end meanwhile; raise OSError where that is impossible.

    Only meanwhile: the orphans of a trial are none of the agent's.
    """
    import ctypes  # takes milliseconds

    system = ctypes.CDLL(None, use_errno=True)
    was = ctypes.c_int()
    if system.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0) or system.prctl(
        _SET_CHILD_SUBREAPER, 1, 0, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "cannot adopt processes")
    try:
        yield
    finally:
        system.prctl(_SET_CHILD_SUBREAPER, was.value, 0, 0, 0)


def bury(group: int) -> None:
    """Wait for the end of all children in a process group that was killed."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)
