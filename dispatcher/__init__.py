"""The process that hosts the tuner and the assessor: it routes the manager's commands to them and back."""

from __future__ import annotations

from .channel import Channel, FdChannel, MemoryChannel
from .errors import (
    ChannelClosed,
    DispatcherError,
    PluginFailed,
    PluginNotLoaded,
    PluginReturnedInvalid,
    UnsupportedCommand,
)
from .inline import InlineDispatcher
from .msg_dispatcher import MsgDispatcher
from .msg_dispatcher_base import Ending, MsgDispatcherBase, Recoverable, dispatcher_at_work

__all__ = [
    "Channel",
    "ChannelClosed",
    "DispatcherError",
    "Ending",
    "FdChannel",
    "InlineDispatcher",
    "MemoryChannel",
    "MsgDispatcher",
    "MsgDispatcherBase",
    "PluginFailed",
    "PluginNotLoaded",
    "PluginReturnedInvalid",
    "Recoverable",
    "UnsupportedCommand",
    "dispatcher_at_work",
]
