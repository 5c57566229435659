"""A dispatcher in the caller's own process and thread: a command goes in, its replies come back."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..protocol import PROTOCOL_ENVIRONMENT, PROTOCOL_VERSION, CommandType, Config, Frame, loads
from ..tuners import Tuner
from .channel import MemoryChannel
from .dispatcher_settings import DispatcherSettings, dispatcher_from
from .errors import PluginFailed
from .msg_dispatcher import MsgDispatcher

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


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

    def __init__(self, config: Config) -> None:
        settings = DispatcherSettings.read(config, {PROTOCOL_ENVIRONMENT: str(PROTOCOL_VERSION)})
        self._channel = MemoryChannel()
        self._one_thread = OneThread()
        self._dispatcher = dispatcher_from(settings, self._channel)

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
        dispatcher = self._dispatcher
        for worker in dispatcher.route(command, data):
            is_default = worker is dispatcher.default_worker
            handle = dispatcher.process_command if is_default else dispatcher.process_assessor_command
            try:
                with self._one_thread():
                    handle(command, data)
            except PluginFailed as failed:
                if isinstance(failed.__cause__, KeyboardInterrupt):
                    raise failed.__cause__ from None
                raise
        sent = self._channel.sent
        return [sent.get() for _ in range(sent.qsize())]


_USERS_SETTING = "OPENBLAS_NUM_THREADS"
# The libraries have one number of threads: of two that overlap, the second would restore that of the first.
_LIMITING = threading.Lock()


class OneThread:
    """Limits BLAS to one thread inside a block, unless the user has set `OPENBLAS_NUM_THREADS`.

    Suggestions are small sums: threads that wait for each other cost more than they save, above all on a busy machine.
    A dispatcher process is started with this setting; here the libraries are loaded already, and others use them, too.
    While another thread is inside such a block, the number is left to that one.

    >>> one_thread = OneThread()
    >>> with one_thread():
    ...     total = sum(range(4))
    """

    def __init__(self) -> None:
        self._libraries: ThreadpoolController | None = None  # finding them takes milliseconds
        self._have_scipys = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Return the block."""
        if _USERS_SETTING in os.environ or not _LIMITING.acquire(blocking=False):
            yield
            return
        try:
            with self._loaded().limit(limits=1, user_api="blas"):
                yield
        finally:
            _LIMITING.release()

    def _loaded(self) -> ThreadpoolController:
        """Return the loaded libraries; SciPy has a BLAS of its own, and is loaded late."""
        has_scipys = "scipy.linalg" in sys.modules
        if self._libraries is None or has_scipys != self._have_scipys:
            from threadpoolctl import ThreadpoolController

            self._libraries, self._have_scipys = ThreadpoolController(), has_scipys
        return self._libraries
