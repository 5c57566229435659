"""A dispatcher in the caller's own process and thread: a command goes in, its replies come back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..protocol import PROTOCOL_ENVIRONMENT, PROTOCOL_VERSION, CommandType, Frame, loads
from ..tuners import Tuner
from .channel import MemoryChannel
from .dispatcher_settings import Settings
from .errors import PluginFailed
from .making import made_from
from .msg_dispatcher import MsgDispatcher
from .one_thread import OneThread


class InlineDispatcher:
    """Hosts the tuner and the assessor of a canonical `config`, without threads or pipes.

    Raises `PluginNotLoaded` for plug-ins that cannot be made; `pauses` says whether the tuner pauses trials.

    >>> hosted = InlineDispatcher({"tuner": {"name": "Random"}, "seed": 1})
    >>> space = '{"x": {"_type": "randint", "_value": [3, 4]}}'
    >>> [frame.command.name for frame in hosted.handle(CommandType.Initialize, space)]
    ['Initialized']
    >>> hosted.handle(CommandType.RequestTrialJobs, "1")[0].payload[:40]
    '{"parameter_id": 0, "parameter_source": '
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        settings = Settings.read(config, {PROTOCOL_ENVIRONMENT: str(PROTOCOL_VERSION)})
        self._channel = MemoryChannel()
        self._one_thread = OneThread()
        self._dispatcher = made_from(settings, self._channel)

    @property
    def pauses(self) -> bool:
        """Whether the tuner pauses trials and resumes them."""
        if not isinstance(self._dispatcher, MsgDispatcher):
            return True  # an advisor may do anything
        stalled = getattr(type(self._dispatcher.tuner), "trials_stalled", None)
        return stalled not in (None, Tuner.trials_stalled)

    @property
    def wants_periodical(self) -> bool:
        """Whether any plug-in gets intermediate results."""
        return bool(self._dispatcher.periodical_queues())

    def handle(self, command: CommandType, payload: str) -> list[Frame]:
        """Handle a command and return what the plug-ins reply.

        Raises `PluginFailed` with what they raise, and `KeyboardInterrupt`: Ctrl-C reaches them in the caller's thread.
        """
        data = loads(payload) if payload else ""
        for worker in self._dispatcher.route(command, data):
            is_default = worker is self._dispatcher.default_worker
            handle = (
                self._dispatcher.process_command if is_default else self._dispatcher.process_assessor_command
            )
            try:
                with self._one_thread():
                    handle(command, data)
            except PluginFailed as failed:
                if isinstance(failed.__cause__, KeyboardInterrupt):
                    raise failed.__cause__ from None
                raise
        sent = self._channel.sent
        return [sent.get() for _ in range(sent.qsize())]
