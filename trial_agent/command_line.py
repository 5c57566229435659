"""Turns a trial command, as the user wrote it, into a program and its arguments, and explains why it cannot start.

A plain command is executed directly, which saves a shell per trial; one that needs a shell gets one.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Mapping

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


class StartError(Exception):
    """The command of a trial cannot be started; `exit_code` is what a shell would have returned."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def needs_shell(command: str) -> bool:
    """Return whether only a shell understands a command.

    >>> needs_shell("python train.py --name 'a b'"), needs_shell("./train > log"), needs_shell("A=1 ./train")
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
    pitchpipe.trial_agent.command_line.StartError: command not found: trainn
    """
    if not is_there(directory, stat.S_ISDIR):
        raise StartError(f"the code directory does not exist: {directory}")
    if shell and needs_shell(command):
        return [_shell(), "-c", command]
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise StartError(f"cannot understand the command ({error}): {command}", 2) from error
    if not words:
        raise StartError("the command is empty", 127)
    return [_find(words[0], directory, environment), *words[1:]]


def explain(error: OSError, arguments: list[str]) -> StartError | MachineError:
    """Return a readable form of the error with which the system refused to execute `arguments`.

    >>> explain(OSError(7, "Argument list too long"), ["/bin/echo"])
    StartError('cannot run /bin/echo: Argument list too long')
    """
    if is_of_machine(error):
        return MachineError.of(error, arguments[0])
    if isinstance(error, FileNotFoundError):
        return StartError(
            f"cannot run {arguments[0]}: the interpreter named in its first line does not exist", 127
        )
    return StartError(f"cannot run {arguments[0]}: {error.strerror}", 126)


def with_interpreter(arguments: list[str], error: OSError) -> list[str] | None:
    """Return how shells run a script without a `#!` line; None if `error` has another cause."""
    return [_shell(), *arguments] if error.errno == errno.ENOEXEC else None


def _shell() -> str:
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


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
        raise StartError(f"not executable: {program} (chmod +x it, or name its interpreter)", 126)
    raise StartError(f"command not found: {program}", 127)
