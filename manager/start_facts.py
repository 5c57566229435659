"""Where an experiment runs and what its code is, noted at each start of a manager.

Git says the commit, the branch and what is not committed, up to a size. The processes of the trials themselves say what
they have loaded. Variables of the environment, which may be secret, are not noted.
"""

from __future__ import annotations

import dis
import inspect
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from types import CodeType, FunctionType, MethodType

from ..sdk import file_digest

MAX_DIFF = 256 * 1024  # bytes
_TIMEOUT = 10.0  # seconds: a repository may lie on a slow disk, and git looks at each file
_DRIVERS = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFacts:
    """The machine of a manager, and the state of the code directory; without git there is no `commit`."""

    host: str
    system: str
    python: str
    pitchpipe: str
    gpus: tuple[str, ...] = ()  # name and driver of each
    commit: str | None = None
    branch: str | None = None  # none if the head is detached
    changed: int | None = None  # files that differ from the commit; None if git did not say
    diff: str = field(default="", repr=False)

    def stored(self) -> tuple[str, str]:
        """Return the facts as JSON, and the difference to the commit."""
        facts = asdict(self)
        diff = facts.pop("diff")
        return json.dumps({name: value for name, value in facts.items() if value not in (None, ())}), diff


def start_facts(code_directory: Path) -> StartFacts:
    """Return the facts of this machine and of the code in a directory; this takes some hundredths of a second.

    >>> start_facts(Path("/no/such/folder")).commit is None
    True
    """
    common = {
        "host": socket.gethostname(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "pitchpipe": version("pitchpipe"),
        "gpus": _gpus(),
    }
    git = _git_of(code_directory)
    commit = _output([*git, "rev-parse", "--verify", "--quiet", "HEAD"]) if git else None
    if not commit:
        return StartFacts(**common)
    branch = _output([*git, "symbolic-ref", "--short", "--quiet", "HEAD"])
    changed = _output([*git, "diff", "--name-only", "HEAD"])
    diff = _output([*git, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD"]) if changed else ""
    return StartFacts(
        **common,
        commit=commit.strip(),
        branch=(branch or "").strip() or None,
        changed=None if changed is None else len(changed.splitlines()),
        diff=diff or "",
    )


def _git_of(directory: Path) -> list[str]:
    """Return the command that asks git about a directory; empty where there is no git or no repository."""
    program = shutil.which("git")
    if program is None or not any((folder / ".git").exists() for folder in (directory, *directory.parents)):
        return []
    # The settings of a repository may name programs that git runs, or have it write: it only reads.
    return [program, "-c", "core.fsmonitor=false", "--no-optional-locks", "-C", str(directory)]


def _gpus() -> tuple[str, ...]:
    if shutil.which(_DRIVERS[0]) is None:
        return ()
    return tuple(line.strip() for line in (_output(_DRIVERS) or "").splitlines() if line.strip())


def _output(command: Sequence[str]) -> str | None:
    """Return the first `MAX_DIFF` bytes of what a command prints; None if it fails or takes too long."""
    try:
        with TemporaryFile() as file:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT,
                check=True,
            )
            file.seek(0)
            return file.read(MAX_DIFF).decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return None


def function_files(function: Callable[..., object], code_directory: Path) -> dict[str, str]:
    """Return the digest of the file that a function or class came from, by its path in the code directory.

    One from the program itself, or from a notebook, is pickled without its file, which may start the experiment as
    well. It has a digest of its own code, and of what that uses: functions, classes and plain values of the program.

    >>> function_files(len, Path("/"))
    {}
    """
    bound: list[object] = []
    while isinstance(function, partial):
        bound += [function.args, function.keywords]
        function = function.func
    owner = inspect.unwrap(function) if callable(function) else function
    if not (inspect.isroutine(owner) or inspect.isclass(owner)):
        owner = type(owner)
    file = getattr(sys.modules.get(owner.__module__ or ""), "__file__", None)
    if owner.__module__ != "__main__" and file is not None and (digest := file_digest(file)) is not None:
        with suppress(OSError):  # the working directory was deleted
            file = os.path.abspath(file)
        path = Path(file)
        inside = path.is_relative_to(code_directory)
        return {str(path.relative_to(code_directory) if inside else path): digest}
    is_python = inspect.isfunction(owner) or inspect.ismethod(owner) or inspect.isclass(owner)
    code = _CodeDigest(owner.__module__)
    code.add(bound)
    code.add(owner)
    return {f"{owner.__qualname__}()": code.hexdigest()} if is_python else {}


class _CodeDigest:
    """A digest of objects of one module: their code, and what the code names, as far as the module defines it."""

    def __init__(self, module: str | None) -> None:
        self._module = module
        self._digest = blake2b(digest_size=8)
        self._seen: set[int] = set()

    def hexdigest(self) -> str:
        """Return the digest of what was added."""
        return self._digest.hexdigest()

    def add(self, value: object) -> None:
        """Add a function, a class or a plain value; anything else, such as a module or an array, does not count."""
        if isinstance(value, staticmethod | classmethod | MethodType):
            value = value.__func__
        if callable(value) and not isinstance(value, type):
            value = inspect.unwrap(value)
        if isinstance(value, list | dict):
            if id(value) in self._seen:
                return  # it may contain itself
            self._seen.add(id(value))
        if isinstance(value, property):
            self._add_all((value.fget, value.fset, value.fdel))
        elif isinstance(value, FunctionType | type):
            self._add_definition(value)
        elif isinstance(value, CodeType):
            self._add_code(value)
        elif isinstance(value, list | tuple):
            self._say(type(value).__name__)
            self._add_all(value)
        elif isinstance(value, dict):
            self._say("dict")
            self._add_all(value.items())
        elif isinstance(value, set | frozenset):  # its order differs from process to process
            self._say(repr(sorted(map(repr, value))))
        elif value is None or isinstance(value, str | bytes | int | float | complex):
            self._say(repr(value))

    def _add_all(self, values: Iterable[object]) -> None:
        for value in values:
            self.add(value)

    def _add_definition(self, value: FunctionType | type) -> None:
        """Add a function or a class, unless another module defines it, whose file is noted when a trial loads it."""
        self._say(value.__qualname__)
        if value.__module__ != self._module or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, type):
            self._add_all(value.__bases__)
            members = vars(value).items()
            self._add_all((name, one) for name, one in members if not name.startswith("__") or callable(one))
            return
        self._add_code(value.__code__)
        self._add_all((value.__defaults__, value.__kwdefaults__))
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # it is empty
                self.add(cell.cell_contents)
        for name in sorted(_global_names(value.__code__)):
            if name in value.__globals__:
                self._say(name)
                self.add(value.__globals__[name])

    def _add_code(self, code: CodeType) -> None:
        self._digest.update(code.co_code)
        self._add_all(code.co_consts)
        self._say(" ".join(code.co_names))

    def _say(self, text: str) -> None:
        self._digest.update(f"{text}\0".encode("utf-8", "surrogatepass"))


def _global_names(code: CodeType) -> set[str]:
    """Return the names that code, and the functions in it, may take from the module."""
    inner = [_global_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    own = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*inner)
