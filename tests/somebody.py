"""Another user than root, who may do everything."""

from __future__ import annotations

import os
from collections.abc import Callable


def as_somebody(work: Callable[[], None]) -> None:
    """Do something in a process of its own as a user who may not do all; raise what it raises as text."""
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(54321)
                os.setuid(54321)
            work()
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
