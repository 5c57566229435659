"""What a trial's process is started with, and which zygote can start it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")
"""The folder that must come first in PYTHONPATH for a Python to become a zygote."""

OF_ONE_TRIAL = ("PITCHPIPE_", "NNI_")
"""How the environment variables begin that differ from trial to trial; a zygote has none of them."""

_PYTHON = re.compile(r"python[0-9.]*")
_FLAGS = re.compile(r"-[bBEIOPqRsu]+")
_WITH_VALUE = ("-W", "-X")


class Kind(NamedTuple):
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
    def kind(self) -> Kind:
        """The kind of zygote that can start it; raises ValueError with the reason if none can."""
        command, _ = split_command(self.arguments)
        shared = (
            (name, value) for name, value in self.environment.items() if not name.startswith(OF_ONE_TRIAL)
        )
        return Kind(tuple(command), self.directory, tuple(shared))

    def packet(self) -> bytes:
        """Return the request to a zygote."""
        _, arguments = split_command(self.arguments)
        entries = (f"{name}={value}" for name, value in self.environment.items())
        words = (self.directory, str(len(arguments)), *arguments, *entries)
        return b"\0".join([self.mark, b"%d" % os.getpid(), *map(os.fsencode, words)])


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the interpreter with its options and the script, and the script's arguments.

    Raises ValueError with the reason why the command has no script that could be started warm.

    >>> split_command(["/bin/python3", "-u", "-W", "error", "train.py", "--lr", "0.1"])
    (['/bin/python3', '-u', '-W', 'error', 'train.py'], ['--lr', '0.1'])
    >>> split_command(["/bin/python", "-m", "package.train", "-m"])
    (['/bin/python', '-m', 'package.train'], ['-m'])
    >>> split_command(["/bin/sh", "-c", "python train.py | tee log"])
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
