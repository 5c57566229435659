"""The manager's side of the pipe to the dispatcher."""

from __future__ import annotations

from .command import Command
from .dispatcher import Dispatcher
from .history import history_of, user_imports
from .replies import REPLIES, is_reply, meaning_of
from .session import DispatcherSetup

__all__ = [
    "REPLIES",
    "Command",
    "Dispatcher",
    "DispatcherSetup",
    "history_of",
    "is_reply",
    "meaning_of",
    "user_imports",
]
