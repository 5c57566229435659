"""Where an experiment runs and what its code is, noted at each start of a manager.

Git says the commit, the branch and what is not committed, up to a size. The processes of the trials themselves say what
they have loaded. Variables of the environment, which may be secret, are not noted.
"""

from __future__ import annotations

import json
import platform
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile

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
