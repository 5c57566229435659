"""The base of every dispatcher: it reads commands, queues them for two workers, and ends on command.

Queues are first in, first out. A handler that raises ends the dispatcher with a report. Every wait is bounded once
the dispatcher is ending. Commands are numbered from 1 as they arrive; between peers, a worker acknowledges a command
(Processed) after everything that it sent for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from enum import Enum
from functools import partial
from typing import Any

from ..plugins import CheckpointFolder
from ..protocol import (
    PROTOCOL_VERSION,
    CommandType,
    InitializedMessage,
    Json,
    MetricMessage,
    ParameterRecord,
    ProcessedMessage,
    TrialEndMessage,
    TruncatedFrame,
    dumps,
    loads,
)
from .channel import Channel
from .checkpointing import Checkpointing, Saver
from .errors import ChannelClosed, UnsupportedCommand, error_report
from .workers import PooledWorker, Worker

QUEUE_LENGTH_WARNING = 20
QUEUE_WARNING_PAUSE_S = 30.0
ACKNOWLEDGE_AFTER = 64
TERMINATE_GRACE_S = 5.0
CLOSED_GRACE_S = 0.5

_log = logging.getLogger(__name__)

_HANDLERS = {
    CommandType.Initialize: "handle_initialize",
    CommandType.RequestTrialJobs: "handle_request_trial_jobs",
    CommandType.UpdateSearchSpace: "handle_update_search_space",
    CommandType.ImportData: "handle_import_data",
    CommandType.AddCustomizedTrialJob: "handle_add_customized_trial",
    CommandType.ReportMetricData: "handle_report_metric_data",
    CommandType.TrialEnd: "handle_trial_end",
    CommandType.Ping: "handle_ping",
}


# The dispatcher whose command the thread handles.
_AT_WORK: ContextVar[MsgDispatcherBase] = ContextVar("at_work")


def dispatcher_at_work() -> MsgDispatcherBase | None:
    """Return the dispatcher whose command this thread handles; None outside of handlers."""
    return _AT_WORK.get(None)


class Ending(Enum):
    """Why a dispatcher ended."""

    TERMINATED = "terminated by the manager"
    CLOSED = "the manager is gone"
    FAILED = "a plug-in or the dispatcher failed"


class Recoverable(CheckpointFolder):
    """Knows which parameter ids an earlier run made, so that new ids follow them.

    >>> dispatcher = Recoverable()
    >>> dispatcher.recover_parameter_id([{"parameter_id": 4, "parameters": {"x": 1}}])
    4
    >>> dispatcher.is_created_in_previous_exp(3), dispatcher.is_created_in_previous_exp(5)
    (True, False)
    >>> dispatcher.get_previous_param(4)
    {'x': 1}
    """

    recovered_max_param_id: int = -1

    def __init__(self) -> None:
        self.recovered_trial_params: dict[int, Json] = {}

    def recover_parameter_id(self, data: list[ParameterRecord | str] | ParameterRecord | str) -> int:
        """Take records (or their JSON) of an earlier run; return its highest parameter id, or -1."""
        for item in data if isinstance(data, list) else [data]:
            record: ParameterRecord = loads(item) if isinstance(item, str) else item
            parameter_id = record.get("parameter_id")
            if isinstance(parameter_id, int):  # not for trials that the user added: theirs is null
                self.recovered_trial_params[parameter_id] = record.get("parameters")
                self.recovered_max_param_id = max(self.recovered_max_param_id, parameter_id)
        return self.recovered_max_param_id

    def is_created_in_previous_exp(self, parameter_id: Any) -> bool:
        """Return whether an earlier run made these parameters."""
        return isinstance(parameter_id, int) and parameter_id <= self.recovered_max_param_id

    def get_previous_param(self, parameter_id: Any) -> Any:
        """Return the parameters that an earlier run made, or None when they were not passed on."""
        return self.recovered_trial_params.get(parameter_id)

    def load_checkpoint(self) -> None:
        """Restore what `save_checkpoint` wrote; called at the start of a resumed run."""

    def save_checkpoint(self) -> None:
        """Write your own state."""


class MsgDispatcherBase(Recoverable):
    """Routes commands to `handle_...` methods; subclass it and override the ones you need.

    `protocol` is the version that the manager announced, or None if it announced none. If `threads` is not 0, the
    queues share a pool of that many threads. In a subclass that is itself an algorithm (an advisor), all handlers run
    on the default worker, one at a time.
    """

    def __init__(
        self,
        channel: Channel | None = None,
        *,
        protocol: int | None = None,
        threads: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.channel = channel
        self.protocol = protocol
        self.worker_exceptions: list[BaseException] = []
        self.abandoned: list[str] = []  # names of workers that did not end in time
        self.terminate_grace_s = TERMINATE_GRACE_S
        self._clock = clock
        self._pool = ThreadPoolExecutor(threads, "dispatcher-pool") if threads else None
        self.default_worker = self._new_worker("default", self.process_command)
        self.assessor_worker = self._new_worker("assessor", self.process_assessor_command)
        self._workers = self.default_worker, self.assessor_worker
        self._received = 0
        self._next_warning = 0.0
        self._failure_lock = threading.Lock()
        self._checkpointing: Checkpointing | None = None
        self._was_restored = False

    def _new_worker(self, name: str, handle: Callable[[CommandType, Any], None]) -> Worker:
        calls = (partial(self._at_work, handle), self._worker_done, self._worker_leaving, self._worker_failed)
        return Worker(name, *calls) if self._pool is None else PooledWorker(name, *calls, pool=self._pool)

    def connect(self, channel: Channel, protocol: int | None) -> None:
        """Set the channel of a dispatcher made without one (an advisor); call this before `run`."""
        self.channel, self.protocol = channel, protocol

    # the main thread

    def run(self) -> Ending:
        """Serve commands until Terminate, the end of the stream, or a failure."""
        for worker in self._workers:
            worker.start()
        ending = self._serve()
        self._stop_workers(ending)
        ended_in_order = ending is Ending.TERMINATED and not self.worker_exceptions and not self.abandoned
        if self._checkpointing is not None and ended_in_order:
            try:
                self._checkpointing.save_at_end(self._received)
            except ChannelClosed as error:
                _log.warning("The manager is gone: %s", error)
        if self.worker_exceptions:
            ending = Ending.FAILED
        _log.info("Dispatcher ends: %s", ending.value)
        return ending

    def _serve(self) -> Ending:
        try:
            if self._was_restored:
                self.send(CommandType.Initialized, self.capabilities())
            while (frame := self._channel.receive()) is not None:
                if frame.command is CommandType.Terminate:
                    return Ending.TERMINATED
                if frame.command is CommandType.Ping and self.protocol is not None:
                    self.send(CommandType.Ping)  # a sign of life of this thread alone; pings are not numbered
                    continue
                self._received += 1
                self.enqueue_command(frame.command, loads(frame.payload) if frame.payload else "")
                if self._checkpointing is not None:
                    self._checkpointing.save_if_due(self._received, self._clock())
        except (TruncatedFrame, ChannelClosed) as error:
            _log.warning("The manager is gone: %s", error)
        except Exception as error:  # noqa: BLE001 - the manager must learn of every failure
            self._report(error, self._received)
            return Ending.FAILED
        return Ending.CLOSED

    def enqueue_command(self, command: CommandType, data: Any) -> None:
        """Queue a command with its decoded payload for each worker that handles it."""
        for worker in self.route(command, data):
            worker.put(self._received, command, data)
            length = worker.queue.qsize()
            if length >= QUEUE_LENGTH_WARNING and (now := self._clock()) >= self._next_warning:
                self._next_warning = now + QUEUE_WARNING_PAUSE_S
                _log.warning("%d commands are waiting in the %s queue", length, worker.name)

    def route(self, command: CommandType, data: Any) -> tuple[Worker, ...]:
        """Return the workers that handle a command."""
        return (self.default_worker,)

    def _stop_workers(self, ending: Ending) -> None:
        at_once = ending is Ending.CLOSED and not self.worker_exceptions
        deadline = self._clock() + (CLOSED_GRACE_S if at_once else self.terminate_grace_s)
        for worker in self._workers:
            worker.finish() if ending is Ending.TERMINATED else worker.halt()
        late = [
            worker
            for worker in self._workers
            if not worker.wait_until_ended(max(0.0, deadline - self._clock()))
        ]
        for worker in late:
            worker.halt()  # a worker that is merely busy with many short commands ends at once
        self.abandoned = [worker.name for worker in late if not worker.wait_until_ended(0.1)]
        for name in self.abandoned:
            _log.warning("The %s worker did not finish its command in time and is abandoned", name)
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    # checkpoints

    def save_into(self, saver: Saver) -> None:
        """Save checkpoints of what `state_of` returns for each queue; call this before `run`."""
        self._checkpointing = Checkpointing(saver, self._workers, self._channel, self.state_of)

    def restore(self, n: int, halves: Mapping[str, Mapping[str, object]]) -> None:
        """Restore the state after command `n`, as `state_of` returned it for each queue; call this before `run`.

        The next command is n + 1. `run` notifies the manager that the dispatcher is initialized.
        """
        self._received = n
        self._was_restored = True
        for worker in self._workers:
            worker.n = n
            self.take_state(worker.name, halves[worker.name])

    def state_of(self, queue: str) -> Mapping[str, object]:
        """Return what must be saved for a queue, on its worker; raise `NotImplementedError` if it cannot be saved."""
        raise NotImplementedError(f"{type(self).__name__} does not implement state_of")

    def take_state(self, queue: str, state: Any) -> None:
        """Restore what `state_of` returned for a queue."""
        raise NotImplementedError(f"{type(self).__name__} does not implement take_state")

    # the workers

    def _at_work(self, handle: Callable[[CommandType, Any], None], command: CommandType, data: Any) -> None:
        """Handle a command: meanwhile `dispatcher_at_work` returns this dispatcher, and `send` collects output."""
        token = _AT_WORK.set(self)
        try:
            handle(command, data)
        finally:
            _AT_WORK.reset(token)

    def process_command(self, command: CommandType, data: Any) -> None:
        """Call the handler of a command; raise `UnsupportedCommand` for one that has none."""
        name = _HANDLERS.get(command)
        if name is None:
            raise UnsupportedCommand(command)
        if command is CommandType.ReportMetricData and "imported" in data:
            return  # the final result of a starting point, for the assessor: it also came by ImportData
        getattr(self, name)(data)

    def process_assessor_command(self, command: CommandType, data: Any) -> None:
        """Call the handler of a command on the assessor queue."""
        self.process_command(command, data)

    def _worker_done(self, worker: Worker) -> None:
        worker.unacknowledged += 1
        if worker.queue.empty() or worker.unacknowledged >= ACKNOWLEDGE_AFTER:
            self._acknowledge(worker)
        self._channel.flush()

    def _worker_leaving(self, worker: Worker) -> None:
        if worker.unacknowledged:
            self._acknowledge(worker)
            self._channel.flush()

    def _acknowledge(self, worker: Worker) -> None:
        worker.unacknowledged = 0
        if self.protocol is not None:
            done = ProcessedMessage(queue=worker.name, n=worker.n)
            self._channel.send(CommandType.Processed, dumps(done))

    def _worker_failed(self, worker: Worker, error: BaseException) -> None:
        if isinstance(error, ChannelClosed):
            _log.warning("The manager is gone: %s", error)
        else:
            self._report(error, worker.n)
        self._channel.interrupt()

    def _report(self, error: BaseException, n: int) -> None:
        """Log a failure; send the first one, which is the one to show, to a peer."""
        with self._failure_lock:
            first = not self.worker_exceptions
            self.worker_exceptions.append(error)
        _log.error("Command %d failed: %s", n, error, exc_info=error)
        if first and self.protocol is not None:
            self._channel.send(CommandType.Error, dumps(error_report(error, n)))
        try:
            self._channel.flush()
        except ChannelClosed:
            _log.warning("The manager is gone and cannot be sent the error")

    # for handlers

    @property
    def _channel(self) -> Channel:
        if self.channel is None:
            raise RuntimeError("the dispatcher has no channel: call connect() before run()")
        return self.channel

    def send(self, command: CommandType, payload: str = "") -> None:
        """Send a command to the manager: with the rest of the current command's output; from other threads, at once."""
        self._channel.send(command, payload)
        if dispatcher_at_work() is not self:
            self._channel.flush()

    def capabilities(self) -> str:
        """Return the payload of Initialized, which is empty for a manager of NNI."""
        if self.protocol is None:
            return ""
        message = InitializedMessage(
            protocol=PROTOCOL_VERSION,
            periodical_queues=self.periodical_queues(),
            any_results=self.any_results(),
            learns=self.learns(),
        )
        return dumps(message)

    def periodical_queues(self) -> list[str]:
        """Return the queues that receive intermediate results; an empty list if they are not used."""
        return ["default"]

    def any_results(self) -> list[str]:
        """Return the kinds of results that may be any JSON value; others must have a number."""
        return ["FINAL", "PERIODICAL"]

    def learns(self) -> bool:
        """Return whether proposals may depend on results, so that none should be asked for ahead."""
        return True

    # handlers: each receives the decoded payload

    def handle_initialize(self, data: Any) -> None:
        """Set the search space; end with `self.send(CommandType.Initialized, self.capabilities())`."""
        raise NotImplementedError("handle_initialize")

    def handle_request_trial_jobs(self, data: int) -> None:
        """Send parameters for `data` trials."""
        raise NotImplementedError("handle_request_trial_jobs")

    def handle_update_search_space(self, data: Any) -> None:
        """Replace the search space."""
        raise NotImplementedError("handle_update_search_space")

    def handle_import_data(self, data: list[Any]) -> None:
        """Take results measured elsewhere."""
        raise NotImplementedError("handle_import_data")

    def handle_add_customized_trial(self, data: list[Any]) -> None:
        """Take parameter records of an earlier run whose trials continue."""
        raise NotImplementedError("handle_add_customized_trial")

    def handle_report_metric_data(self, data: MetricMessage) -> None:
        """Take a result of a trial."""
        raise NotImplementedError("handle_report_metric_data")

    def handle_trial_end(self, data: TrialEndMessage) -> None:
        """Take the end of a trial."""
        raise NotImplementedError("handle_trial_end")

    def handle_ping(self, data: Any) -> None:
        """Ignore a sign of life."""
