"""What runs next to the user's code: the agent, its trials, the spool and the functions a script calls.

The names load lazily: a trial script comes through here on its way to `sdk` and must not pay for the agent.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from typing import Any

    from .checkpoint import Checkpoint
    from .core import Agent
    from .job import Job, RunSpec
    from .messages import MessageDecoder, MessageError, encode_message
    from .sdk import TrialStopped
    from .shelf import Keeping
    from .spool import SpoolReader, read_spool, spool_name
    from .trainable import FunctionTrainable, Trainable, wrap_function
    from .unix_server import UnixServer

_HOMES = {
    "Agent": "core",
    "Checkpoint": "checkpoint",
    "FunctionTrainable": "trainable",
    "Job": "job",
    "Keeping": "shelf",
    "MessageDecoder": "messages",
    "MessageError": "messages",
    "RunSpec": "job",
    "SpoolReader": "spool",
    "Trainable": "trainable",
    "TrialStopped": "sdk",
    "UnixServer": "unix_server",
    "encode_message": "messages",
    "read_spool": "spool",
    "spool_name": "spool",
    "wrap_function": "trainable",
}

__all__ = [
    "Agent",
    "Checkpoint",
    "FunctionTrainable",
    "Job",
    "Keeping",
    "MessageDecoder",
    "MessageError",
    "RunSpec",
    "SpoolReader",
    "Trainable",
    "TrialStopped",
    "UnixServer",
    "encode_message",
    "read_spool",
    "spool_name",
    "wrap_function",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
