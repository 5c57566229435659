"""A place for experiments, apart from the user's own, and commands that run there within a time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from pitchpipe.compat.nni.alias import PATH

__all__ = ["Place", "Ran", "outcome"]

_PITCHPIPE = (sys.executable, "-P", "-m", "pitchpipe")


class Ran(NamedTuple):
    """How a command ended: with a code, or None if it did not in time."""

    code: int | None
    output: str

    @property
    def last_line(self) -> str:
        """Return the last line that it printed."""
        return ([line.strip() for line in self.output.splitlines() if line.strip()] or ["nothing printed"])[
            -1
        ]


class Place:
    """A copy of the sources and a home of its own; all experiments are stopped at its end.

    `folder` is the copy, and `environment` what lets a process use the home.
    """

    def __init__(self, sources: Path) -> None:
        self._sources = sources

    def __enter__(self) -> Place:
        self._root = Path(tempfile.mkdtemp(prefix="nni-"))
        self.folder = self._root / "sources"
        for part in ("examples", "test"):
            if (self._sources / part).is_dir():
                shutil.copytree(self._sources / part, self.folder / part)
        (self._root / "run").mkdir(mode=0o700)
        home, scripts = str(self._root), str(Path(sys.executable).parent)
        self.environment = {
            **os.environ,
            "HOME": home,
            "XDG_CONFIG_HOME": home,
            "PITCHPIPE_DIR": str(self._root / "experiments"),
            "PITCHPIPE_RUNTIME_DIR": str(self._root / "run"),
            "PYTHONPATH": PATH,
            "PATH": os.pathsep.join((scripts, os.environ.get("PATH", ""))),
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_all()
        shutil.rmtree(self._root)

    def run(self, words: Sequence[str], folder: Path | None = None, patience_s: float = 60.0) -> Ran:
        """Run a command in a folder, the copy if not given; after `patience_s` it is interrupted, then killed."""
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                words,
                cwd=folder or self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code: int | None = None
            try:
                code = process.wait(patience_s)
            except subprocess.TimeoutExpired:
                _end(process)
            except BaseException:  # Ctrl-C does not reach it: it has a session of its own
                _end(process)
                raise
            output.seek(0)
            return Ran(code, output.read())

    def python(self, *words: str, folder: Path | None = None, patience_s: float = 60.0) -> Ran:
        """Run Python, as `run` does."""
        return self.run([sys.executable, *words], folder, patience_s)

    def stop_all(self) -> None:
        """Stop all experiments."""
        self.run([*_PITCHPIPE, "stop", "--all"])

    def newest(self) -> dict[str, Any] | None:
        """Return the facts of the experiment that was started last, None if there is none."""
        ran = self.run([*_PITCHPIPE, "list", "--json"])
        return next(iter(json.loads(ran.output)), None) if ran.code == 0 else None

    def missing(self, script: Path) -> str:
        """Return the packages that a script imports and that are not installed, separated by commas."""
        ran = self.python("-c", _MISSING, str(script))
        return ran.output.strip() if ran.code == 0 else ""


def outcome(facts: dict[str, Any] | None) -> str:
    """Return the status of an experiment with its numbers of trials, `DONE: 10 SUCCEEDED`."""
    if facts is None:
        return "no experiment"
    counts = ", ".join(f"{count} {status}" for status, count in facts["counts"].items())
    return f"{facts['status']}: {counts or 'no trial'}"


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20.0)
            return


_MISSING = """
import ast, importlib.util, pathlib, sys
script = pathlib.Path(sys.argv[1])
names = set()
for node in ast.walk(ast.parse(script.read_text())):
    if isinstance(node, ast.Import):
        names.update(alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names.add(node.module.partition(".")[0])
sys.path.insert(0, str(script.parent))
print(", ".join(sorted(name for name in names if importlib.util.find_spec(name) is None)))
"""
