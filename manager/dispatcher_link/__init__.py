"""The manager's side of the pipe to the dispatcher."""

from __future__ import annotations

from .dispatcher import Dispatcher, DispatcherSetup
from .numbered_commands import Command, history_of, user_imports
from .replies import REPLIES, is_reply, meaning_of
