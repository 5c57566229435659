"""The manager's side of the pipe to the dispatcher."""

from .replies import REPLIES, meaning_of
from .retelling import history_of, user_imports
from .session import DispatcherSession, DispatcherSetup

__all__ = [
    "REPLIES",
    "DispatcherSession",
    "DispatcherSetup",
    "history_of",
    "meaning_of",
    "user_imports",
]
