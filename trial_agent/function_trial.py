"""One attempt of a function trial: a Python function or class, in the agent's process and the calling thread."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..protocol import foreign
from ..sdk import (
    FunctionTrainable,
    LineFile,
    MachineError,
    Trainable,
    TrialFunction,
    TrialStopped,
    hosted,
    metric_text,
    own_calls,
    shortened,
)
from . import class_trial, environ
from .agent_events import Ended, Outbox, Started
from .class_trial import Stable, run_class, unwrapped
from .disk import with_disk_error
from .forks import ending_forks
from .function_channel import FunctionChannel
from .job import Job

_OWN_FILES = frozenset((__file__, class_trial.__file__))


class FunctionTrial:
    """Runs one attempt in the calling thread; `kill` may be called from any other."""

    def __init__(
        self,
        job: Job,
        functions: FunctionLoader,
        spool: LineFile,
        outbox: Outbox,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.job = job
        self.pid = os.getpid()
        self.in_user_code = False
        self._functions = functions
        self._outbox = outbox
        self._clock = clock
        self._channel = FunctionChannel(job, spool, outbox, clock)
        self._exported: dict[str, str] | None = None
        self._is_class = False

    @property
    def is_to_end(self) -> bool:
        """Whether a kill was asked for."""
        return self._channel.stopped

    def record_new_beginning(self) -> None:
        """Write to the spool that what it holds of this attempt so far does not count."""
        self._channel.record_new_beginning()

    def kill(self, grace: float) -> None:
        """Stop the function at its next report; if there is none, the manager replaces the agent."""
        del grace
        self._channel.stopped = True
        self._outbox.stir()  # the function may wait for room there

    def pause(self, grace: float) -> None:
        """End the attempt after its next checkpoint or at its second report; end a class between two steps."""
        del grace
        self._channel.pausing = True

    def run(self) -> Ended:
        """Call the function and return the attempt's end; all its reports have been sent by then."""
        self._outbox.put(Started(**self.job.who, pid=self.pid, time=self._clock()), urgent=False)
        with hosted(self._channel):
            ended = self._call()
        self._record(ended)
        return ended

    def give_up(self, why: str) -> None:
        """Record that the attempt has failed while its function runs: this process is about to end."""
        self._record(self._ended(1, why))

    def _record(self, ended: Ended) -> None:
        self._channel.close()
        # The manager still gets the event; on a full disk there is nowhere to say more.
        with contextlib.suppress(OSError):
            self._channel.record_end(ended)

    def _call(self) -> Ended:
        try:
            with ending_forks():
                if devices := environ.visible_devices(self.job.gpus):
                    os.environ.update(devices)
                self.job.check()
                function = self._functions.load(self.job)
                returned = None if self._channel.stopped else self._enter(function)
            if not self._channel.has_final and (result := self._result(returned)) is not None:
                self._channel.report("final", result)
            return self._ended(0)
        except TrialStopped:
            return self._ended(None, paused=self._channel.pausing and not self._channel.stopped)
        except SystemExit as error:
            return self._exited(error.code)
        except BaseException as error:  # noqa: BLE001 - whatever the user's function raises ends its trial only
            said = with_disk_error(_last_lines(error), self.job.run.folder)
            return self._ended(1, said, infra=_is_of_machine(error))

    def _result(self, returned: Any) -> str | None:
        """Return what a function returned, or else reported last, as JSON text; a class reports its result itself."""
        if returned is not None:
            return metric_text(returned)
        return None if self._is_class else self._channel.last_report

    def _enter(self, function: TrialFunction) -> Any:
        parameters = self._channel.parameters()
        self.in_user_code = True
        try:
            if self._channel.stopped:  # since the last look; nothing interrupts what is not in users' code
                raise TrialStopped
            made = self._functions.stable.call(function, parameters, self.job.gpus)
            if isinstance(made, Trainable):
                return self._drive(function, made)
            return made
        finally:
            self.in_user_code = False

    def _drive(self, function: TrialFunction, made: Trainable) -> Any:
        if isinstance(made, FunctionTrainable):
            return type(made).function(made.parameters)
        self._is_class = True
        keep = functools.partial(self._functions.stable.keep, made, function, self.job.gpus)
        self._exported = run_class(made, self._channel, self.job, keep) or None
        return None

    def _exited(self, code: object) -> Ended:
        if code is None or isinstance(code, int):
            return self._ended((code or 0) & 0xFF, f"sys.exit({code})" if code else None)
        return self._ended(1, str(code))

    def _ended(
        self, code: int | None, error: str | None = None, *, paused: bool = False, infra: bool = False
    ) -> Ended:
        return Ended(
            **self.job.who,
            exit_code=code,
            error=error,
            killed=self._channel.stopped,
            paused=paused,
            infra=infra,
            exported=self._exported,
            time=self._clock(),
        )


class FunctionLoader:
    """Unpickles the trial function once, and again only if its file changed; `stable` keeps what it made."""

    def __init__(self) -> None:
        self.stable = Stable()
        self._loaded: tuple[str, int] | None = None
        self._function: TrialFunction | None = None

    def load(self, job: Job) -> TrialFunction:
        """Return the function that an attempt calls; raise what unpickling it raises."""
        path = os.path.join(job.run.folder, job.run.path)
        try:
            version = path, os.stat(path).st_mtime_ns
        except OSError as error:
            raise MachineError.of(error) from None
        if self._function is None or self._loaded != version:
            self._function = unwrapped(_unpickle(path, job))
            self._loaded = version
        return self._function


def _unpickle(path: str, job: Job) -> TrialFunction:
    import cloudpickle

    own = job.run.environment
    os.environ.update({**environ.limited_threads(job.run.threads, os.environ, own), **own})
    directory = job.run.code_directory
    if directory is not None and directory not in sys.path:
        sys.path.append(directory)  # must not hide what the program itself does not find there
    for alias in foreign("import alias"):
        alias.activate()
    with own_calls(), open(path, "rb") as file:
        data = file.read()
    return cloudpickle.loads(data)


def _is_of_machine(error: BaseException | None) -> bool:
    """Return whether a call of the agent itself has failed, and so the user's function."""
    while error is not None and not isinstance(error, MachineError):
        error = error.__cause__ or error.__context__
    return error is not None


def _users_part(frames: TracebackType | None) -> TracebackType | None:
    """Return the traceback below the agent's own frames, or all of it if nothing is below."""
    inner = frames
    while inner is not None and inner.tb_frame.f_code.co_filename in _OWN_FILES:
        inner = inner.tb_next
    return inner or frames


def _last_lines(error: BaseException) -> str:
    """Return the end of a traceback, without the agent's own frames."""
    import traceback

    lines = traceback.format_exception(type(error), error, _users_part(error.__traceback__))
    return shortened("".join(lines).strip())
