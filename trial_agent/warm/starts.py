"""Whether a trial is started warm, and its start: as a fork of a zygote, a process that has imported what it needs.

That is done only if a zygote of its kind is ready: nothing ever waits for one. The agent becomes the trial's parent.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ...protocol import size_text
from ..machine_limits import available_bytes
from ..processes import LINUX, WatchdogClient, resident_bytes

MOST_UNUSED = 5
"""After so many zygotes in a row that started no trial, no other is made."""

_SHARE = 4  # a zygote may take this part of the available memory
# The folder that must come first in PYTHONPATH for a Python to become a zygote.
_HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")
# How the environment variables begin that differ from trial to trial; a zygote has none of them.
_OF_ONE_TRIAL = ("PITCHPIPE_", "NNI_")
_PYTHON = re.compile(r"python[0-9.]*")
_FLAGS = re.compile(r"-[bBEIOPqRsu]+")
_WITH_VALUE = ("-W", "-X")
_PATIENCE = 10.0  # seconds for a start through a zygote, which takes milliseconds
_ROOM = 4096  # bytes of environment that a trial has beyond its zygote
_SENTENCE = 4096
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37


class WarmStarts:
    """The zygote of an agent. It is made for the second trial of the same kind in a row, or for the first if `eager`.

    `start` returns None for a trial that has to be started cold. Then `prepare` makes the next one warm, if possible.
    """

    def __init__(self, watchdog: WatchdogClient) -> None:
        self._watchdog = watchdog
        self._zygote: Zygote | None = None
        self._last: ZygoteKind | None = None
        self._refused: ZygoteKind | None = None
        self._unused = 0
        self._note: str | None = None
        self._told: set[str] = set()

    def start(self, launch: Launch) -> Adopted | None:
        """Start a trial as a fork of the zygote, if there is a ready one of its kind."""
        zygote = self._zygote
        if zygote is None or not self._is_usable(zygote):
            return None
        try:
            kind = launch.kind
        except ValueError:
            return None
        if kind != zygote.kind or not zygote.is_ready:
            return None
        self._last = kind
        trial = zygote.start(launch)
        if trial is None:  # it was killed, or its files have changed
            self._end(zygote)
        else:
            self._unused = 0
        return trial

    def prepare(self, launch: Launch, folder: Path, *, eager: bool) -> None:
        """Make a zygote for the next trials of this kind, if they are to be expected."""
        try:
            kind = launch.kind
            if not LINUX:
                raise ValueError("warm starts need Linux")
        except ValueError as reason:
            self._note = str(reason)
            return
        is_repeated, self._last = kind == self._last, kind
        if kind == self._refused or not (is_repeated or eager):
            return
        if self._zygote is not None:
            if kind == self._zygote.kind:
                return
            self._end(self._zygote)
        if self._unused >= MOST_UNUSED:
            self._note = f"{MOST_UNUSED} processes in a row that were to start trials have ended without one"
            return
        self._unused += 1
        try:
            self._zygote = Zygote(kind, folder)
        except OSError as error:
            self._refuse(kind, f"{kind.command[0]} cannot be started: {error}")
        else:
            self._watchdog.keep(self._zygote.pid)

    def note(self) -> str | None:
        """Return why trials are not warm, or not wholly; each reason once."""
        note, self._note = self._note, None
        if note is None or note in self._told:
            return None
        self._told.add(note)
        return note

    def close(self) -> None:
        """End the zygote."""
        if self._zygote is not None:
            self._end(self._zygote)

    def _is_usable(self, zygote: Zygote) -> bool:
        was_ready = zygote.is_ready
        lives = zygote.look()
        self._note = zygote.note or self._note
        if not lives:
            self._end(zygote)
            if not zygote.is_ready:
                why = f"{zygote.kind.command[0]} ended before it was ready"
                self._refuse(zygote.kind, zygote.note or why)
        elif zygote.is_ready and not was_ready:
            used = resident_bytes(zygote.pid)
            if used * _SHARE > available_bytes():
                self._end(zygote)
                size = size_text(used, is_memory=True)
                self._refuse(zygote.kind, f"memory is short: {size} would be kept ready")
                return False
        return lives

    def _refuse(self, kind: ZygoteKind, reason: str) -> None:
        self._refused, self._note = kind, reason

    def _end(self, zygote: Zygote) -> None:
        zygote.close()
        self._watchdog.drop(zygote.pid)
        self._zygote = None


class ZygoteKind(NamedTuple):
    """The key of a zygote: trials of an equal kind differ only in their arguments and their own variables."""

    command: tuple[str, ...]  # up to the script, or `-m` and the module
    directory: str
    environment: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command to start: `mark` identifies its processes, `stdout` and `stderr` are open files."""

    arguments: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    mark: bytes
    stdout: int
    stderr: int

    @property
    def kind(self) -> ZygoteKind:
        """The kind of zygote that can start it; raises ValueError with the reason if none can."""
        command, _ = _split_command(self.arguments)
        shared = [each for each in self.environment.items() if not each[0].startswith(_OF_ONE_TRIAL)]
        return ZygoteKind(tuple(command), self.directory, tuple(shared))

    def packet(self) -> bytes:
        """Return the request to a zygote."""
        _, arguments = _split_command(self.arguments)
        entries = (f"{name}={value}" for name, value in self.environment.items())
        words = (self.directory, str(len(arguments)), *arguments, *entries)
        return b"\0".join([self.mark, b"%d" % os.getpid(), *map(os.fsencode, words)])


def _split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the interpreter with its options and the script, and the script's arguments.

    Raises ValueError with the reason why the command has no script that could be started warm.

    >>> _split_command(["/bin/python3", "-u", "-W", "error", "train.py", "--lr", "0.1"])
    (['/bin/python3', '-u', '-W', 'error', 'train.py'], ['--lr', '0.1'])
    >>> _split_command(["/bin/python", "-m", "package.train", "-m"])
    (['/bin/python', '-m', 'package.train'], ['-m'])
    >>> _split_command(["/bin/sh", "-c", "python train.py | tee log"])
    Traceback (most recent call last):
    ValueError: /bin/sh is not Python
    """
    if not _PYTHON.fullmatch(os.path.basename(arguments[0])):
        raise ValueError(f"{arguments[0]} is not Python")
    at = 1
    while at < len(arguments):
        word = arguments[at]
        if word == "-m" and at + 1 < len(arguments):
            return list(arguments[: at + 2]), list(arguments[at + 2 :])
        if not word.startswith("-"):
            return list(arguments[: at + 1]), list(arguments[at + 1 :])
        if not _FLAGS.fullmatch(word) and not word.startswith(_WITH_VALUE):
            raise ValueError(f"Python's option {word} is not known to work")
        at += 2 if word in _WITH_VALUE else 1
    raise ValueError("the command has no script")


class Zygote:
    """A process in the trial's Python that has imported, or still imports, what trials of one kind import first."""

    def __init__(self, kind: ZygoteKind, folder: Path) -> None:
        self.kind = kind
        self.is_ready = False
        self.note: str | None = None  # what is not as warm as it could be
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder.mkdir(parents=True, exist_ok=True)
        self._output: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (close)
        self._errors: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (close)
        with theirs:
            self._process = subprocess.Popen(
                [*_without_script(kind.command), "-c", "pass"],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._errors,
                cwd=kind.directory,
                env=_environment(kind, theirs.fileno()),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.pid = self._process.pid

    def look(self) -> bool:
        """Take note of what the zygote has said, without waiting; return whether it lives."""
        self._socket.setblocking(False)
        try:
            while said := self._socket.recv(_SENTENCE):
                word, _, rest = said.decode("utf-8", "replace").partition(" ")
                self.is_ready |= word == "ready"
                self.note = rest if word == "note" else self.note
        except BlockingIOError:
            return True
        except OSError:  # it was killed with unread requests
            pass
        self.note = self.note or self._last_words()
        return False

    def start(self, launch: Launch) -> Adopted | None:
        """Start a trial; return None if nothing was started, and this zygote cannot start any."""
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with channel, contextlib.suppress(OSError, ValueError), _adopting():
            channel.settimeout(_PATIENCE)
            self._socket.settimeout(_PATIENCE)
            with theirs:
                descriptors = [launch.stdout, launch.stderr, theirs.fileno()]
                socket.send_fds(self._socket, [launch.packet()], descriptors)
            pid = int(channel.recv(_SENTENCE))
            channel.send(b"1")
            with contextlib.suppress(OSError):  # it runs, or was killed just now
                channel.recv(1)  # the end: it has a session of its own
            return Adopted(pid)
        return None

    def close(self) -> None:
        """End the zygote, whatever it does."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        # Its children, which were killed with it, are the agent's now.
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-self.pid, 0)
        self._output.close()
        self._errors.close()

    def _last_words(self) -> str | None:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _SENTENCE))
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), None)


def _without_script(command: tuple[str, ...]) -> tuple[str, ...]:
    return command[:-2] if command[-2] == "-m" else command[:-1]


def _environment(kind: ZygoteKind, descriptor: int) -> dict[str, str]:
    shared = dict(kind.environment)
    path = os.pathsep.join(filter(None, [_HOOK, shared.get("PYTHONPATH")]))
    own = {
        "PITCHPIPE_WARM": "survey",
        "PITCHPIPE_WARM_SOCKET": str(descriptor),
        "PITCHPIPE_WARM_COMMAND": "\x1f".join(kind.command),
        "PITCHPIPE_WARM_ROOM": "." * _ROOM,
    }
    return {**shared, **own, "PYTHONPATH": path}


class Adopted:
    """An adopted process, with the part of `subprocess.Popen` that following it needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def wait(self) -> int:
        """Wait for the end and return the exit code, or the negative number of a signal."""
        if self.returncode is None:
            _, status = os.waitpid(self.pid, 0)
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Become the parent of descendants whose own parents end meanwhile; raise OSError where that is impossible.

    Only meanwhile: the orphans of a trial are none of the agent's.
    """
    import ctypes  # takes milliseconds

    system = ctypes.CDLL(None, use_errno=True)
    was = ctypes.c_int()
    failed = system.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0)
    if failed or system.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot adopt processes")
    try:
        yield
    finally:
        system.prctl(_SET_CHILD_SUBREAPER, was.value, 0, 0, 0)
