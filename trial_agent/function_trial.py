"""One attempt of a function trial: a Python function called in the agent's process, in the calling thread."""

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import orjson

from . import environ, events, sdk
from .job import Job
from .line_file import LineFile
from .outbox import Outbox
from .spool import Interpreter

ERROR_CHARACTERS = 4096

TrialFunction = Callable[[dict[str, Any]], Any]


class FunctionChannel:
    """Where the SDK's functions lead inside a function trial: the shared spool first, then the manager."""

    def __init__(
        self, job: Job, spool: LineFile, outbox: Outbox, clock: Callable[[], float] = time.time
    ) -> None:
        self.experiment_id = job.run.experiment
        self.trial_id = job.trial
        self.sequence_id = job.sequence_id
        self.stopped = False
        self._record = job.parameters
        self._prefix = f'{{"trial": {sdk.metric_text(job.trial)}, "attempt": {job.attempt}, '
        self._interpreter = Interpreter(job.trial, job.attempt, job.first_sequence)
        self._spool = spool
        self._outbox = outbox
        self._clock = clock
        self._lock = threading.Lock()  # the order in the file is the numbering
        self._pid = os.getpid()

    def parameters(self) -> dict[str, Any]:
        """Return the trial's parameters, each time anew."""
        return sdk.parameters_of(self._record)

    def report(self, kind: str, value: str) -> None:
        """Write one result down and send it; raise TrialStopped when the trial was stopped."""
        if self.stopped:
            raise sdk.TrialStopped
        if os.getpid() != self._pid:
            raise RuntimeError("a function trial reports from its own process, not from one it forked")
        now = self._clock()
        with self._lock:
            self._spool.append(f'{self._prefix}"{kind}": {value}, "time": {now!r}}}')
            self._outbox.put(self._interpreter.report(kind, value, now), urgent=False)

    def record_end(self, outcome: dict[str, Any]) -> None:
        """Write down how the attempt ended."""
        self._spool.append(f'{self._prefix}"ended": {orjson.dumps(outcome).decode()}}}')

    @property
    def has_final(self) -> bool:
        """Whether a final result was reported."""
        return self._interpreter.reported("final")


class FunctionTrial:
    """Runs one attempt in the calling thread; `kill` may be called from any other."""

    def __init__(
        self,
        job: Job,
        functions: "FunctionLoader",
        spool: LineFile,
        outbox: Outbox,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.job = job
        self.pid: int | None = os.getpid()
        self.in_user_code = False
        self._functions = functions
        self._outbox = outbox
        self._clock = clock
        self._channel = FunctionChannel(job, spool, outbox, clock)

    def kill(self, grace: float) -> None:
        """Stop the function at its next report; if there is none, the manager replaces the agent."""
        del grace
        self._channel.stopped = True

    def run(self) -> dict[str, Any]:
        """Call the function and return the outcome; every report has been sent by then."""
        job = self.job
        self._outbox.put(events.started(job.trial, job.attempt, os.getpid(), self._clock()), urgent=False)
        sdk.current.enter(self._channel)
        try:
            outcome = self._call()
        finally:
            sdk.current.enter(None)
        try:
            self._channel.record_end(outcome)
        except OSError as error:  # the event still tells the manager
            self._outbox.put(events.problem(job.trial, job.attempt, f"cannot write to the spool: {error}"))
        return outcome

    def _call(self) -> dict[str, Any]:
        try:
            os.environ.update(environ.visible_devices(self.job.gpus))
            function = self._functions.load(self.job)
            returned = None if self._channel.stopped else self._enter(function)
            if returned is not None and not self._channel.has_final:
                self._channel.report("final", sdk.metric_text(returned))
            return self._outcome(0)
        except sdk.TrialStopped:
            return self._outcome(None)
        except SystemExit as error:
            return self._exited(error.code)
        except BaseException as error:  # noqa: BLE001 - whatever the user's function raises ends its trial only
            return self._outcome(1, _last_lines(error))

    def _enter(self, function: TrialFunction) -> Any:
        parameters = self._channel.parameters()
        self.in_user_code = True
        try:
            return function(parameters)
        finally:
            self.in_user_code = False

    def _exited(self, code: object) -> dict[str, Any]:
        if code is None or isinstance(code, int):
            return self._outcome((code or 0) & 0xFF, f"sys.exit({code})" if code else None)
        return self._outcome(1, str(code))

    def _outcome(self, code: int | None, error: str | None = None) -> dict[str, Any]:
        return events.outcome(code, None, error, killed=self._channel.stopped, time=self._clock())


class FunctionLoader:
    """Unpickles the trial function once, and again only when its file changed."""

    def __init__(self) -> None:
        self._loaded: tuple[str, int] | None = None
        self._function: TrialFunction | None = None

    def load(self, job: Job) -> TrialFunction:
        """Return the function that an attempt calls; raise what unpickling it raises."""
        path = os.path.join(job.run.folder, job.run.path)
        version = path, os.stat(path).st_mtime_ns
        if self._function is None or self._loaded != version:
            self._function = _unpickle(path, job)
            self._loaded = version
        return self._function


def _unpickle(path: str, job: Job) -> TrialFunction:
    import cloudpickle

    os.environ.update(job.run.environment)
    directory = job.run.code_directory
    if directory is not None and directory not in sys.path:
        sys.path.insert(0, directory)
    with open(path, "rb") as file:
        return cloudpickle.load(file)


def _users_part(frames: TracebackType | None) -> TracebackType | None:
    """Return the traceback below the agent's own frames; all of it when there is nothing below."""
    inner = frames
    while inner is not None and inner.tb_frame.f_code.co_filename == __file__:
        inner = inner.tb_next
    return inner or frames


def _last_lines(error: BaseException) -> str:
    """Return the end of a traceback, without the agent's own frames."""
    import traceback

    text = "".join(traceback.format_exception(type(error), error, _users_part(error.__traceback__))).strip()
    if len(text) > ERROR_CHARACTERS:
        last = text[-ERROR_CHARACTERS:]
        text = last.partition("\n")[2] or last
    return text
