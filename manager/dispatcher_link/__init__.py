"""The manager's side of the pipe to the dispatcher."""

from __future__ import annotations

from .dispatcher import Dispatcher, DispatcherSetup
from .numbered_commands import Command
from .replies import REPLIES, is_reply, meaning_of
from .results_so_far import history_of, user_imports
