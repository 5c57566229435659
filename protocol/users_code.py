"""A guard against endless experiments: code that is imported for one must not start another.

The other one would import the code again, and so on for ever.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

_LOADING = "PITCHPIPE_LOADING"  # what the process with this number loads; its children may start experiments

Loaded = Literal["trial", "plug-in", "stopper"]


class StartedWhileLoadingError(RuntimeError):
    """Code that is imported for an experiment starts one itself; the message says what to write."""


@contextmanager
def loading(what: Loaded) -> Iterator[None]:
    """Mark a block of this process that imports users' code."""
    before = os.environ.get(_LOADING, "")
    os.environ[_LOADING] = f"{os.getpid()} {what}"
    try:
        yield
    finally:
        os.environ[_LOADING] = before


def refuse_while_loading(*kinds: Loaded) -> None:
    """Raise `StartedWhileLoadingError` inside a block of this process that loads one of these.

    >>> refuse_while_loading("trial")
    >>> with loading("trial"):
    ...     refuse_while_loading("trial")
    Traceback (most recent call last):
    pitchpipe.protocol.users_code.StartedWhileLoadingError: this code is imported for the trial ...
    """
    pid, _, what = os.environ.get(_LOADING, "").partition(" ")
    if pid == str(os.getpid()) and what in kinds:
        raise StartedWhileLoadingError(
            f"this code is imported for the {what} of an experiment, and starts an experiment itself: put what starts"
            ' it under `if __name__ == "__main__":`, or into a function'
        )
