"""One zygote: its process, what it says, and the start of a trial through it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..processes import resident_bytes
from .launch import HOOK, Kind, Launch

_PATIENCE = 10.0  # seconds for a start through a zygote, which takes milliseconds
_ROOM = 4096  # bytes of environment that a trial has beyond its zygote
_SENTENCE = 4096
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37


class Zygote:
    """A process in the trial's Python that has imported, or still imports, what trials of one kind import first."""

    def __init__(self, kind: Kind, folder: Path) -> None:
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
        """Start a trial; return None if the zygote cannot, having started nothing. It is of no use then."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, contextlib.suppress(OSError, ValueError), _adopting():
            ours.settimeout(_PATIENCE)
            self._socket.settimeout(_PATIENCE)
            with theirs:
                descriptors = [launch.stdout, launch.stderr, theirs.fileno()]
                socket.send_fds(self._socket, [launch.packet()], descriptors)
            pid = int(ours.recv(_SENTENCE))
            ours.send(b"1")
            with contextlib.suppress(OSError):  # it runs, or was killed just now
                ours.recv(1)  # the end: it has a session of its own
            return Adopted(pid)
        return None

    def memory(self) -> int:
        """Return the bytes that the zygote takes."""
        return resident_bytes(self.pid)

    def close(self) -> None:
        """End the zygote, whatever it does."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        _bury(self.pid)
        self._output.close()
        self._errors.close()

    def _last_words(self) -> str | None:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _SENTENCE))
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), None)


def _without_script(command: tuple[str, ...]) -> tuple[str, ...]:
    return command[:-2] if command[-2] == "-m" else command[:-1]


def _environment(kind: Kind, descriptor: int) -> dict[str, str]:
    shared = dict(kind.environment)
    path = os.pathsep.join(filter(None, [HOOK, shared.get("PYTHONPATH")]))
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
    if system.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(was), 0, 0, 0) or system.prctl(
        _SET_CHILD_SUBREAPER, 1, 0, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "cannot adopt processes")
    try:
        yield
    finally:
        system.prctl(_SET_CHILD_SUBREAPER, was.value, 0, 0, 0)


def _bury(group: int) -> None:
    """Wait for the end of all children in a process group that was killed."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)
