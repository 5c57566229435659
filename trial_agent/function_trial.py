"""One attempt of a function trial: a Python function or class, in the agent's process and the calling thread.

A class, a `Trainable`, is driven from step to step; an instance that can be reset is kept for the next trial.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from ..protocol import Parameters, foreign, loading
from ..sdk import (
    Checkpoint,
    CodeFacts,
    FunctionTrainable,
    LineFile,
    LoadedCode,
    MachineError,
    Trainable,
    TrialFunction,
    TrialStopped,
    clean_up,
    code_digest,
    hosted,
    merged_code,
    metric_text,
    own_calls,
    shortened,
    write_data,
)
from . import environ
from .agent_events import Ended, Outbox, Started
from .disk import with_disk_error
from .forks import ending_forks
from .function_channel import FunctionChannel
from .function_output import FunctionOutput
from .job import Job


class FunctionTrial:
    """Runs one attempt in the calling thread; `kill` may be called from any other.

    With an `output`, what the function prints goes to files of the attempt.
    """

    def __init__(
        self,
        job: Job,
        functions: FunctionLoader,
        spool: LineFile,
        outbox: Outbox,
        clock: Callable[[], float] = time.time,
        output: FunctionOutput | None = None,
    ) -> None:
        self.job = job
        self.pid = os.getpid()
        self.in_user_code = False
        self._functions = functions
        self._outbox = outbox
        self._clock = clock
        self._output = output
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
        """Call the function and return the attempt's end; all its reports have been sent by then.

        Raises OSError if the files of its output cannot be made.
        """
        if self._output is None:
            ended = self._begin()
        else:
            self._output.begin(self.job, self._channel)
            try:
                ended = self._begin()
            finally:
                self._output.end()
        self._record(ended)
        return ended

    def _begin(self) -> Ended:
        self._outbox.put(Started(**self.job.who, pid=self.pid, time=self._clock()), urgent=False)
        with hosted(self._channel):
            return self._call()

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
        self, exit_code: int | None, error: str | None = None, *, paused: bool = False, infra: bool = False
    ) -> Ended:
        code, loaded = self._functions.code()
        return Ended(
            **self.job.who,
            exit_code=exit_code,
            error=error,
            killed=self._channel.stopped,
            paused=paused,
            infra=infra,
            exported=self._exported,
            code=code,
            loaded=loaded,
            time=self._clock(),
        )


def run_class(
    trainable: Trainable, channel: FunctionChannel, job: Job, keep: Callable[[], None]
) -> dict[str, str]:
    """Drive an instance to the end of an attempt and return the paths of what it exported, by format.

    Raises what the class raises, and TrialStopped at a stop or pause. The instance is cleaned up, or passed to `keep`
    if it may be used again.
    """
    in_order = False
    try:
        exported = _Drive(trainable, channel, job).run()
        in_order = True
        return exported
    except TrialStopped:
        in_order = True
        raise
    finally:
        if in_order and job.run.reuse_actors:
            keep()
        else:
            clean_up(trainable)


class _Drive:
    def __init__(self, trainable: Trainable, channel: FunctionChannel, job: Job) -> None:
        self._trainable = trainable
        self._channel = channel
        self._job = job
        self._pauses_at_budget = job.pauses_at_budget
        self._last: str | None = None

    def run(self) -> dict[str, str]:
        self._restore()
        while not self._step():
            if self._job.budget is not None and self._trainable.iteration >= self._job.budget:
                if not self._pauses_at_budget:
                    break
                self._channel.pausing = True  # the tuner has said so before
            pausing = self._channel.pausing
            if pausing or self._is_save_due():
                self._channel.save(self._fill)
            if pausing:  # nothing was saved: a save would have raised it
                raise TrialStopped
        if self._job.keep.at_end or self._job.budget is not None or self._is_save_due():
            self._channel.save_at_end(self._fill)
        if self._last is not None and not self._channel.has_final:
            self._channel.report("final", self._final(self._last))
        return self._export()

    def _restore(self) -> None:
        self._trainable.iteration = self._job.first_sequence
        if self._job.checkpoint is not None:
            checkpoint = Checkpoint(self._job.checkpoint)
            self._trainable.load_checkpoint(checkpoint.to_dict() if checkpoint.is_dict else checkpoint.path)

    def _step(self) -> bool:
        """Make one step, report its result and return whether the trainable is done."""
        metric, done = _result(self._trainable, self._trainable.step())
        self._trainable.iteration += 1
        if metric is not None:
            self._last = metric_text(metric)
            self._channel.report("intermediate", self._last)
        return done

    def _final(self, last: str) -> str:
        """Return the final result; a trial that would be paused at its budget says in it that it is done."""
        if not self._pauses_at_budget:
            return last
        result = json.loads(last)
        return metric_text({**result, "done": True} if isinstance(result, dict) else result)

    def _is_save_due(self) -> bool:
        frequency = self._job.keep.frequency
        return frequency > 0 and self._trainable.iteration % frequency == 0

    def _fill(self, folder: str) -> None:
        data = self._trainable.save_checkpoint(folder)
        if data is not None and data != folder:  # a class may also return the directory that it wrote
            write_data(folder, data)

    def _export(self) -> dict[str, str]:
        formats = list(self._trainable.export_formats)
        if not formats:
            return {}
        directory = os.path.join(self._job.folder, "export")
        with own_calls():
            os.makedirs(directory, exist_ok=True)
        exported = self._trainable.export_model(formats, directory)
        if not isinstance(exported, dict):
            what = f"export_model returned {exported!r:.200}"
            raise TypeError(f"{what}, which is not a dict of paths by format")
        root = self._job.run.folder
        return {str(name): _relative(os.fspath(path), root) for name, path in exported.items()}


def _result(trainable: Trainable, result: Any) -> tuple[Any, bool]:
    """Return the metric in the result of a step (None: there is none) and whether the trial is done."""
    if result is None:
        raise TypeError(f"{type(trainable).__name__}.step() returned None: return a number or a dict")
    if not isinstance(result, dict):
        return result, False
    metric = {name: value for name, value in result.items() if name != "done"}
    return metric or None, bool(result.get("done"))


def _relative(path: str, folder: str) -> str:
    """Return a path in the experiment's folder relative to that folder, and any other as it is.

    >>> _relative("/exp/trials/0/export/model.onnx", "/exp"), _relative("/models/a", "/exp")
    ('trials/0/export/model.onnx', '/models/a')
    """
    inside = os.path.commonpath([os.path.abspath(path), folder]) == folder
    return os.path.relpath(path, folder) if inside else path


class Stable:
    """The instance of a class that an agent keeps for the next trial, if any."""

    def __init__(self) -> None:
        self._kept: Trainable | None = None
        self._made_for: tuple[TrialFunction, Sequence[int | str] | None] | None = None

    def call(self, function: TrialFunction, parameters: Parameters, gpus: Sequence[int | str] | None) -> Any:
        """Return what the function returns, or a Trainable when it is a class or makes one.

        The Trainable is the one that was kept, if it was made for the same GPUs and can be reset.
        """
        kept, self._kept = self._kept, None
        if kept is not None:
            if self._made_for == (function, gpus) and _is_reset(kept, parameters):
                return kept
            clean_up(kept)
        return function(parameters)

    def keep(self, trainable: Trainable, function: TrialFunction, gpus: Sequence[int | str] | None) -> None:
        """Keep an instance that its attempt left in order."""
        self._kept = trainable
        self._made_for = function, gpus

    def close(self) -> None:
        """Clean up what was kept."""
        if self._kept is not None:
            clean_up(self._kept)
            self._kept = None


def _is_reset(trainable: Trainable, parameters: Parameters) -> bool:
    try:
        if not trainable.reset_config(parameters):
            return False
    except BaseException:
        clean_up(trainable)
        raise
    trainable.parameters = parameters
    return True


class FunctionLoader:
    """Unpickles the trial function once, and again only if its file changed; `stable` keeps what it made."""

    def __init__(self) -> None:
        self.stable = Stable()
        self._loaded: tuple[str, int] | None = None
        self._function: TrialFunction | None = None
        self._modules: LoadedCode | None = None
        self._code: CodeFacts | None = None
        self._unsaid: CodeFacts | None = None
        self._digest: str | None = None

    def load(self, job: Job) -> TrialFunction:
        """Return the function that an attempt calls; raise what unpickling it raises."""
        path = os.path.join(job.run.folder, job.run.path)
        try:
            version = path, os.stat(path).st_mtime_ns
        except OSError as error:
            raise MachineError.of(error) from None
        if self._function is None or self._loaded != version:
            self._function = _unwrapped(_unpickle(path, job))
            self._loaded = version
            self._note_code({"files": dict(job.run.function_files)})
            self._modules = self._modules or LoadedCode(job.run.code_directory or ".")
            self._modules.look()  # now: the files may change while the function runs
        return self._function

    def code(self) -> tuple[str | None, CodeFacts | None]:
        """Return the digest of what this process has loaded, and that itself, unless an earlier call returned it."""
        if self._modules is not None and (news := self._modules.news()) is not None:
            self._note_code(news)
        said, self._unsaid = self._unsaid, None
        return self._digest, said

    def _note_code(self, more: CodeFacts) -> None:
        self._code = self._unsaid = merged_code([self._code or {}, more])
        self._digest = None if self._code is None else code_digest(self._code)


def _unwrapped(function: TrialFunction) -> TrialFunction:
    """Return the function in a FunctionTrainable class, and anything else as it is.

    >>> from pitchpipe import wrap_function
    >>> _unwrapped(wrap_function(len)) is len, _unwrapped(Trainable) is Trainable
    (True, True)
    """
    if isinstance(function, type) and issubclass(function, FunctionTrainable):
        return function.function
    return function


def _unpickle(path: str, job: Job) -> TrialFunction:
    import cloudpickle

    own = job.run.environment
    threads = environ.limited_threads(job.run.threads, os.environ, own)
    os.environ.update({**threads, **environ.UNBUFFERED, **own})  # a new Python that the function starts, too
    directory = job.run.code_directory
    if directory is not None and directory not in sys.path:
        sys.path.append(directory)  # must not hide what the program itself does not find there
    for alias in foreign("import alias"):
        alias.activate()
    with own_calls(), open(path, "rb") as file:
        data = file.read()
    with loading("trial"):
        return cloudpickle.loads(data)


def _is_of_machine(error: BaseException | None) -> bool:
    """Return whether a call of the agent itself has failed, and so the user's function."""
    while error is not None and not isinstance(error, MachineError):
        error = error.__cause__ or error.__context__
    return error is not None


def _users_part(frames: TracebackType | None) -> TracebackType | None:
    """Return the traceback below the agent's own frames, or all of it if nothing is below."""
    inner = frames
    while inner is not None and inner.tb_frame.f_code.co_filename == __file__:
        inner = inner.tb_next
    return inner or frames


def _last_lines(error: BaseException) -> str:
    """Return the end of a traceback, without the agent's own frames."""
    import traceback

    lines = traceback.format_exception(type(error), error, _users_part(error.__traceback__))
    return shortened("".join(lines).strip())
