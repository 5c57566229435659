"""Helpers of the end-to-end tests: real commands, real processes, the real database."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 60.0

__all__ = ["Lab"]


class Lab:
    """A folder with a config and a script, and the experiments made of them."""

    def __init__(self, folder: Path, platform: str = "local") -> None:
        self.folder = folder
        self.directory = folder / "experiments"
        self.platform = platform
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, script: str, name: str = "trial.py", **fields: Any) -> Path:
        """Write a trial script and a config that runs it; return the config's path."""
        (self.folder / name).write_text(script)
        command = f"{sys.executable} {name}" if name.endswith(".py") else f"sh {name}"
        service: dict[str, Any] = {"platform": self.platform}
        if self.platform == "ray":
            service["idle_timeout"] = 0
        config = {
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "trial_command": command,
            "max_trial_number": 6,
            "trial_concurrency": 2,
            "seed": 1,
            "tuner": {"name": "Random"},
            "kill_grace": 1,
            "training_service": service,
            **fields,
        }
        path = self.folder / "experiment.yml"
        path.write_text(json.dumps(config))
        return path

    def command(self, *words: str | Path) -> list[str]:
        """Return the command line of a verb on this lab's experiments."""
        verb, *rest = words
        return [_console_script(), str(verb), *map(str, rest), "--dir", str(self.directory)]

    def run(self, *words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end."""
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=PATIENCE * 2, check=False, **options
        )

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        """Start a verb."""
        return subprocess.Popen(
            self.command(*words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run_json(self, config: Path, *options: str) -> dict[str, Any]:
        """Run an experiment called `exp`; return the object that `--json` prints."""
        done = self.run("run", config, "--experiment-id", "exp", "--json", *options)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def trials(self) -> list[dict[str, Any]]:
        """Export the trials."""
        done = self.run("export", "exp", "--format", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["trials"]

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the database of the experiment; nothing if there is none yet."""
        path = self.directory / "exp" / "experiment.db"
        if not path.exists():
            return []
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return db.execute(sql).fetchall()
        except sqlite3.OperationalError:  # its tables are being made
            return []
        finally:
            db.close()

    def until(self, condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
        """Wait until something is true of the world outside, which gives no notice when it changes."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if process is not None and process.poll() is not None:
                raise AssertionError(f"it ended before: {process.communicate()}")
            if time.monotonic() > deadline:
                raise TimeoutError("waited in vain")
            time.sleep(0.02)


def _console_script() -> str:
    return os.path.join(os.path.dirname(sys.executable), "pitchpipe")
