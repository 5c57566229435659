"""Starts what the command of a trial says: one program, or, as `torchrun` does, one process for each rank on this node.

A plain command is executed directly, which saves a shell per trial; one that needs a shell gets one. For several
processes this module runs in place of the command, as the leader of the trial's process group: whatever ends the group
ends it, too. It ends all of them when one fails.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from ..protocol import CANNOT_RUN, NO_COMMAND, NOT_EXECUTABLE, NOT_FOUND, NOT_UNDERSTOOD
from ..sdk import MachineError, is_of_machine, is_there

_SHELL_CHARACTERS = frozenset("|&;<>()$`\\*?[]{}~#!\n")
_SHELL_WORDS = frozenset(
    (
        *(":", ".", "alias", "bg", "builtin", "case", "cd", "command", "declare", "eval", "exec", "exit"),
        *("export", "for", "function", "if", "let", "local", "read", "readonly", "return", "select", "set"),
        *("shift", "shopt", "source", "time", "times", "trap", "type", "ulimit", "umask", "unset", "until"),
        *("wait", "while"),
    )
)
_ANY_PORT = 0
_TAIL = 3072  # bytes of a rank's stderr that the trial's error may hold


class StartError(Exception):
    """The command of a trial cannot be started; `exit_code` is what a shell would have returned."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def _needs_shell(command: str) -> bool:
    """Return whether only a shell understands a command.

    >>> _needs_shell("python train.py --name 'a b'"), _needs_shell("./train > log"), _needs_shell("A=1 ./train")
    (False, True, True)
    """
    if not _SHELL_CHARACTERS.isdisjoint(command):
        return True
    first = command.split(None, 1)[0] if command.strip() else ""
    return "=" in first or first in _SHELL_WORDS


def arguments_of(
    command: str, directory: str, environment: Mapping[str, str], *, shell: bool = True
) -> list[str]:
    """Return the program (as a path that can be executed) and its arguments.

    Raises StartError when the directory or the program does not exist or may not be executed.

    >>> arguments_of("sh -e 'my script'", "/", {"PATH": "/bin"})
    ['/bin/sh', '-e', 'my script']
    >>> arguments_of("trainn", "/", {"PATH": "/bin"})
    Traceback (most recent call last):
    pitchpipe.trial_agent.launcher.StartError: command not found: trainn
    """
    if not is_there(directory, stat.S_ISDIR):
        raise StartError(f"the code directory does not exist: {directory}")
    if shell and _needs_shell(command):
        return [_shell(), "-c", command]
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise StartError(f"{NOT_UNDERSTOOD}({error}): {command}", 2) from error
    if not words:
        raise StartError(NO_COMMAND, 127)
    return [_find(words[0], directory, environment), *words[1:]]


def _find(program: str, directory: str, environment: Mapping[str, str]) -> str:
    if "/" in program:
        candidates = [os.path.join(directory, program)]
    else:
        path = environment.get("PATH", os.defpath)
        candidates = [os.path.join(directory, folder or ".", program) for folder in path.split(os.pathsep)]
    files = [candidate for candidate in candidates if is_there(candidate, stat.S_ISREG)]
    for file in files:
        if os.access(file, os.X_OK):
            return file
    if files:
        raise StartError(f"{NOT_EXECUTABLE}{program} (chmod +x it, or name its interpreter)", 126)
    raise StartError(f"{NOT_FOUND}{program}", 127)


def _shell() -> str:
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


def start_program(arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program, or, as shells do, a script without a `#!` line; `options` are those of `Popen`.

    Raises `StartError` or `MachineError` if the system refuses to execute it.

    >>> start_program(["/bin/echo", "x" * 200_000])
    Traceback (most recent call last):
    pitchpipe.trial_agent.launcher.StartError: cannot run /bin/echo: Argument list too long
    """
    start = cast("Callable[..., subprocess.Popen[bytes]]", subprocess.Popen)
    try:
        return start(arguments, **options)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            return start([_shell(), *arguments], **options)
        if is_of_machine(error):
            raise MachineError.of(error, arguments[0]) from error
        if isinstance(error, FileNotFoundError):
            why = "the interpreter named in its first line does not exist"
            raise StartError(f"{CANNOT_RUN}{arguments[0]}: {why}", 127) from error
        raise StartError(f"{CANNOT_RUN}{arguments[0]}: {error.strerror}", 126) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """The processes of one trial, seen from one of its nodes.

    There are `processes` in all. `master` is the "host:port" at which they meet; on a single node it is found by the
    launcher. Each but the first writes to files of its own in `folder`, whose names end with `suffix` and the rank.
    """

    processes: int
    nodes: int = 1
    node: int = 0
    master: str = ""
    folder: str = "."
    suffix: str = ""
    grace: float = 5.0

    @property
    def here(self) -> int:
        """How many processes run on this node."""
        return self.processes // self.nodes

    @property
    def ranks(self) -> range:
        """The ranks on this node.

        >>> Team(processes=4, nodes=2, node=1).ranks
        range(2, 4)
        """
        return range(self.node * self.here, (self.node + 1) * self.here)

    def environment(self, rank: int, master: str) -> dict[str, str]:
        """Return the variables by which the process of a rank finds the others.

        >>> Team(processes=4, nodes=2, node=1).environment(3, "10.0.0.1:29500")["LOCAL_RANK"]
        '1'
        """
        host, _, port = master.rpartition(":")
        numbers = {
            "RANK": rank,
            "LOCAL_RANK": rank - self.ranks.start,
            "WORLD_SIZE": self.processes,
            "LOCAL_WORLD_SIZE": self.here,
            "NODE_RANK": self.node,
        }
        return {"MASTER_ADDR": host, "MASTER_PORT": port} | {name: str(n) for name, n in numbers.items()}

    def log(self, name: str, rank: int) -> str:
        """Return the path of a rank's output file."""
        return os.path.join(self.folder, f"{name}{self.suffix}-rank{rank}")


def launcher_command(arguments: Sequence[str], team: Team) -> list[str]:
    """Return the program that runs `arguments` once for each process of the team on this node."""
    return [sys.executable, "-P", "-m", __name__, json.dumps(asdict(team)), *arguments]


class _Launcher:
    def __init__(self, team: Team, arguments: list[str]) -> None:
        self._team = team
        self._arguments = arguments
        self._running: dict[int, tuple[int, subprocess.Popen[bytes]]] = {}  # rank and process, by pid
        self._asked_to_end = False

    def run(self) -> int:
        """Run all processes and return 0, or the exit code of the first one that failed."""
        # The processes are in the same group and get the signal, too: this one stays until they have ended.
        signal.signal(signal.SIGTERM, self._on_term)
        master = self._team.master or f"127.0.0.1:{_free_port(_ANY_PORT)}"
        if self._team.node == 0 and self._team.master:
            _free_port(int(master.rpartition(":")[2]))
        for rank in self._team.ranks:
            process = self._start(rank, {**os.environ, **self._team.environment(rank, master)})
            self._running[process.pid] = rank, process
        failed = self._wait()
        if failed is None:
            return 0
        if not self._asked_to_end:
            self._explain(*failed)
        return failed[1] if failed[1] > 0 else 128 - failed[1]

    def _on_term(self, number: int, frame: object) -> None:
        del number, frame
        self._asked_to_end = True

    def _start(self, rank: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        if rank == 0:
            return start_program(self._arguments, env=environment)
        out, err = (self._team.log(name, rank) for name in ("stdout", "stderr"))
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            return start_program(self._arguments, env=environment, stdout=stdout, stderr=stderr)

    def _wait(self) -> tuple[int, int] | None:
        """Return when all have ended: the rank and the code of the first failure, if any."""
        failed = None
        while self._running:
            pid, status = os.wait()
            if pid not in self._running:
                continue  # an orphan that this process inherited
            rank, process = self._running.pop(pid)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode and failed is None:
                failed = rank, process.returncode
                self._end_others()
        return failed

    def _end_others(self) -> None:
        self._signal(signal.SIGTERM)
        timer = threading.Timer(self._team.grace, self._signal, (signal.SIGKILL,))
        timer.daemon = True
        timer.start()

    def _signal(self, number: int) -> None:
        for pid in list(self._running):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def _explain(self, rank: int, code: int) -> None:
        """Write to the trial's stderr what failed: the end of it becomes the trial's error."""
        how = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
        if rank:
            with open(self._team.log("stderr", rank), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                sys.stderr.buffer.write(b"\n" + file.read())
        print(f"\nrank {rank} of {self._team.processes} failed with {how}", file=sys.stderr, flush=True)


def _free_port(wanted: int) -> int:
    """Return a port that is free on this node; raise StartError if the wanted one is not."""
    try:
        # It does not listen: a process on another node that already tries to connect would reach this socket.
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", wanted))
            return probe.getsockname()[1]
    except OSError as error:
        message = f"the processes of the trial cannot meet: port {wanted} is in use on {socket.gethostname()}"
        raise StartError(f"{message}; run the trial again, which uses another one") from error


def main(arguments: Sequence[str]) -> int:
    """Run a team: its JSON form, then the program and its arguments."""
    try:
        return _Launcher(Team(**json.loads(arguments[0])), list(arguments[1:])).run()
    except StartError as error:
        print(error, file=sys.stderr)
        return error.exit_code or 1
    except OSError as error:  # the calls are this module's
        raise MachineError.of(error) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
