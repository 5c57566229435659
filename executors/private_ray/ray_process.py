"""Two things to do in a process that has joined a Ray: restore its signal handler, and list the cluster's actors."""

from __future__ import annotations

import signal
import threading
from typing import Any, cast


def take_back_signals() -> None:
    """Install our SIGTERM handler again, above Ray's, whose C++ code would print a page before ours runs."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGTERM)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)


def named_actors() -> list[dict[str, str]]:
    """Return the live named actors of the whole cluster: `{"namespace", "name"}`."""
    from ray.util import list_named_actors

    return cast(Any, list_named_actors(all_namespaces=True))
