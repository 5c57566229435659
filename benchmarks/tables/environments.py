"""The virtual environments of the tables, one for each file in `requirements/`, made when they are first needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EnvironmentUnavailable", "Environments", "clean"]

_REQUIREMENTS = Path(__file__).parent / "requirements"
# The files of these name every library that is installed, so that what the packages ask for is not looked at.
_COMPLETE = frozenset({"bayesmark"})
# What the pinned versions have wheels for.
_VERSION = "3.11"


class EnvironmentUnavailable(RuntimeError):
    """An environment cannot be made."""


@dataclass(frozen=True)
class Environments:
    """Environments in a folder; None is the environment that runs this."""

    folder: Path

    def python(self, name: str | None) -> str:
        """Return the interpreter of an environment, after making it where it is missing or outdated."""
        if name is None:
            return sys.executable
        wanted = (_REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
        path, stamp = self.folder / name, self.folder / name / "requirements.txt"
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            self._make(name, path)
            stamp.write_text(wanted, encoding="utf-8")
        return str(path / "bin" / "python")

    def _make(self, name: str, path: Path) -> None:
        print(f"making {path} (once; this takes a few minutes)", file=sys.stderr, flush=True)
        options = ["--no-deps"] if name in _COMPLETE else []
        requirements = ["-r", str(_REQUIREMENTS / f"{name}.txt")]
        _call(name, [_interpreter(), "-m", "venv", "--clear", str(path)])
        pip = [str(path / "bin" / "python"), "-m", "pip", "install", "--quiet", "--compile"]
        _call(name, [*pip, *options, *requirements])


def clean() -> dict[str, str]:
    """Return the environment variables for another environment: one thread, and no modules of this one."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    # Suggestions are small sums: threads that wait for each other would be counted as work.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**kept, **threads, "PYTHONHASHSEED": "0"}


def _interpreter() -> str:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == _VERSION:
        return sys.executable
    found = shutil.which(f"python{_VERSION}")
    if found is None:
        raise EnvironmentUnavailable(
            f"the libraries of the tables need Python {_VERSION}; put python{_VERSION} on the PATH"
        )
    return found


def _call(name: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean())
    if done.returncode:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise EnvironmentUnavailable(f"the environment {name} cannot be made:\n{' '.join(command)}\n{last}")
