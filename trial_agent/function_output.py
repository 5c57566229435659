"""What function trials print: each attempt has its own `stdout` and `stderr`, as an attempt of a script has.

An agent runs one trial at a time. While it calls the function, its descriptors 1 and 2 are the files of the attempt, so
C libraries and child processes write there, too. Python's streams also look at the thread: what a thread of an earlier
trial still prints goes to the log of the agent, as does everything between two trials.

To make two files and a folder takes a tenth of the time of the shortest trials. While these print nothing they share
two empty files, which become those of the trial that prints after all.
"""

from __future__ import annotations

import fcntl
import io
import os
import sys
import time
from contextlib import suppress
from typing import Any

from ..sdk import MachineError, channel_here, file_identity, is_of_machine
from .job import Job

QUICK = 0.01  # seconds: nobody follows the output of a trial that is shorter
_STREAMS = ((1, "stdout"), (2, "stderr"))
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
_ABOVE = 3  # a copy of a descriptor must not be one of the standard ones


class FunctionOutput:
    """Gives the descriptors 1 and 2 of a process to one attempt after another.

    `shared` is the path of the shared files, without the name of the stream.
    """

    def __init__(self, shared: str | os.PathLike[str]) -> None:
        self._streams = [_Stream(number, name, f"{os.fspath(shared)}.{name}") for number, name in _STREAMS]
        self._is_shared = False
        self._folder = ""
        self._began = 0.0
        self._system: Any = None

    def begin(self, job: Job, channel: object) -> None:
        """Let what is printed from now on be the attempt's; `channel` is how its threads are recognised.

        Raises OSError if its files cannot be made.
        """
        self._folder, self._began = job.folder, time.monotonic()
        if not self._is_shared:
            os.makedirs(job.folder, exist_ok=True)
        try:
            for stream in self._streams:
                stream.begin(job.log(stream.name), channel, is_shared=self._is_shared)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Write what is still in a buffer, and let what is printed from now on be the agent's."""
        for stream in self._streams:
            stream.flush()
        self._flush_libraries()
        has_printed = [stream.end() for stream in self._streams]
        if not any(has_printed) and not self._is_shared:
            with suppress(OSError):  # it has checkpoints
                os.rmdir(self._folder)
        self._is_shared = not any(has_printed) and time.monotonic() - self._began < QUICK

    def close(self) -> None:
        """Remove the files that no trial has printed to."""
        for stream in self._streams:
            stream.remove_shared()

    def _flush_libraries(self) -> None:
        """Write what C libraries keep in their buffers: in a file it would appear in the middle of the next trial."""
        if self._system is None:
            import ctypes  # takes milliseconds

            self._system = ctypes.CDLL(None)
        self._system.fflush(None)


class _Stream:
    """One of the two streams of the process, and where it leads."""

    def __init__(self, descriptor: int, name: str, shared: str) -> None:
        self.name = name
        self.descriptor = descriptor
        self._shared = shared
        self._is_shared = False
        self._path = ""
        self._own: int | None = None  # a copy of the descriptor, as it is between two trials
        self._identity: tuple[int, int] | None = None
        self._channel: object | None = None  # of the present attempt
        self._text = _text_of(self)
        self._before: Any = None
        self.remove_shared()  # of an agent of this name that was killed

    def begin(self, path: str, channel: object, *, is_shared: bool) -> None:
        """Lead to a file from now on."""
        if self._own is None or file_identity(self._own) != self._identity:
            self._keep_own()
        self._path, self._is_shared = path, is_shared
        _lead(self.descriptor, self._shared if is_shared else path)
        self._before = getattr(sys, self.name)
        # The same for all trials: what a library has kept of it in one trial must not be closed in the next.
        setattr(sys, self.name, self._usable())
        self._channel = channel

    def flush(self) -> None:
        """Write what Python keeps in its buffers: the interpreter's own stream has one, and so may one of the user."""
        if self._channel is not None:
            for stream in (getattr(sys, self.name), getattr(sys, f"__{self.name}__")):
                with suppress(BaseException):  # a user's own stream may raise anything
                    stream.flush()

    def end(self) -> bool:
        """Lead to where the stream led before; return whether anything was printed."""
        if self._channel is None:
            return False
        self._channel = None
        setattr(sys, self.name, self._before)
        with suppress(OSError):  # out of descriptors: the attempt has ended, and must not fail for that
            self._give_back()
        try:
            return self._sort_out()
        except OSError:  # it was removed, or a child made it a trial's; or a full disk lets nothing be moved
            return True

    def _give_back(self) -> None:
        if self._own is not None and file_identity(self._own) == self._identity:
            os.dup2(self._own, self.descriptor)
        else:  # the function has closed it
            _lead(self.descriptor, os.devnull)

    def _sort_out(self) -> bool:
        """Remove the file if it is empty, unless it is the shared one; return whether it is not."""
        has_printed = os.stat(self._shared if self._is_shared else self._path).st_size > 0
        if has_printed and self._is_shared:
            self._settle()
        elif not has_printed and not self._is_shared:
            os.unlink(self._path)
        return has_printed

    def where(self) -> int:
        """Return the descriptor to which the calling thread prints; the shared file becomes its trial's.

        It is -1 for a thread of an earlier trial if a function has closed the agent's log.
        """
        if self._channel is None:
            return self.descriptor
        here = channel_here()
        if here is not None and here is not self._channel:
            is_kept = self._own is not None and file_identity(self._own) == self._identity
            return self._own if self._own is not None and is_kept else -1
        if self._is_shared:
            self._settle()
        return self.descriptor

    def remove_shared(self) -> None:
        """Remove the shared file."""
        with suppress(OSError):
            os.unlink(self._shared)

    def _settle(self) -> None:
        """Make the shared file that of the trial; a forked child may do so at the same time."""
        self._is_shared = False
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        with suppress(FileNotFoundError):
            os.rename(self._shared, self._path)

    def _keep_own(self) -> None:
        if file_identity(self.descriptor) is None:  # the process was started without it
            _lead(self.descriptor, os.devnull)
        self._own = fcntl.fcntl(self.descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        self._identity = file_identity(self._own)

    def _usable(self) -> io.TextIOWrapper:
        try:
            self._text.flush()
        except ValueError:  # a function has detached it
            self._text = _text_of(self)
        return self._text


class _Words(io.RawIOBase):
    """The bytes that Python code prints; they are written at once, so that a kill loses none."""

    mode = "wb"

    def __init__(self, stream: _Stream, name: str) -> None:
        super().__init__()
        self.name = name
        self._stream = stream

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._stream.descriptor

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any, /) -> int:
        """Write all of the bytes; raise MachineError if the machine does not take them."""
        rest = memoryview(data).cast("B")
        count = len(rest)
        try:
            descriptor = self._stream.where()
            while len(rest) and descriptor >= 0:
                rest = rest[os.write(descriptor, rest) :]
        except OSError as error:
            if is_of_machine(error):
                raise MachineError.of(error, self.name) from None
            raise
        return count

    def close(self) -> None:
        """Stay open: the next trial prints here, too."""


def _text_of(stream: _Stream) -> io.TextIOWrapper:
    words: Any = _Words(stream, f"<{stream.name}>")
    return io.TextIOWrapper(words, encoding="utf-8", errors="backslashreplace", write_through=True)


def _lead(descriptor: int, path: str) -> None:
    """Make a descriptor, which children inherit, that of a file; the file is made, or emptied."""
    file = os.open(path, _FLAGS, 0o666)
    if file == descriptor:
        os.set_inheritable(file, True)
        return
    try:
        os.dup2(file, descriptor)
    finally:
        os.close(file)
