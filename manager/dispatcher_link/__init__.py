"""The manager's side of the pipe to the dispatcher."""

from __future__ import annotations

from .command import Command
from .dispatcher import Dispatcher
from .replies import REPLIES, meaning_of
from .session import DispatcherSetup

__all__ = ["REPLIES", "Command", "Dispatcher", "DispatcherSetup", "meaning_of"]
