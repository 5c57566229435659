"""Runs probes: small programs that measure a few numbers.

Each runs in its own process and an empty folder. Our probes and those of peers take turns (ours, peer, ours,
peer, ...), so that other load on the machine affects all of them alike. Processes that a probe leaves behind are
found by a mark in their environment, never by name.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pitchpipe.trial_agent import ProcessTree

__all__ = ["LOAD", "Bench", "Outcome", "Probe"]

PROBES = Path(__file__).parent / "probes"
MARK = "BENCHMARK_PROBE"
# The machine's load before a probe is stored with its numbers, under this key.
LOAD = "load_before"
# What would make one side slower than the other, or slower than for users.
UNWANTED = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "XDG_RUNTIME_DIR")


@dataclass(frozen=True, slots=True)
class Probe:
    """One side of a measurement: `script` in probes/, with its `size`, or `quick` for a trial run.

    `needs` is the distribution that must be installed: ours or a peer's.
    """

    name: str
    script: str
    size: int
    quick: int
    options: tuple[str, ...] = ()
    needs: str = "pitchpipe"
    timeout: float = 240.0
    repetitions: int | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it measures Pitchpipe."""
        return self.needs == "pitchpipe"


@dataclass(slots=True)
class Outcome:
    """The numbers of each repetition of a probe, and the errors of those that failed."""

    values: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    skipped: str = ""

    def median(self, key: str) -> float | None:
        """Return the median over the repetitions, None if there is none."""
        found = self.values.get(key)
        return statistics.median(found) if found else None

    def add(self, numbers: dict[str, float]) -> None:
        """Add the numbers of one repetition."""
        for key, value in numbers.items():
            self.values.setdefault(key, []).append(value)


@dataclass(frozen=True, slots=True)
class Bench:
    """How to measure: the environment of the peers, the number of repetitions, the size."""

    peers: Path | None
    repetitions: int = 3
    quick: bool = False
    _versions: dict[str, str | None] = field(default_factory=dict, init=False)

    def measure(self, probes: Sequence[Probe]) -> dict[str, Outcome]:
        """Run the probes in turn, `repetitions` times, and collect their outcomes by name."""
        outcomes = {probe.name: Outcome() for probe in probes}
        for repetition in range(self.repetitions):
            for probe in probes:
                self._measure_once(probe, outcomes[probe.name], repetition)
        return outcomes

    def version(self, distribution: str) -> str | None:
        """Return the installed version of a distribution of ours or of the peers."""
        if distribution not in self._versions:
            self._versions[distribution] = self._ask_version(distribution)
        return self._versions[distribution]

    def _ask_version(self, distribution: str) -> str | None:
        python = self._python(distribution)
        if python is None:
            return None
        ask = f"from importlib.metadata import version; print(version({distribution!r}))"
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, cwd=PROBES, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def _measure_once(self, probe: Probe, outcome: Outcome, repetition: int) -> None:
        if probe.repetitions is not None and repetition >= probe.repetitions:
            return
        if outcome.skipped or len(outcome.errors) > 1:
            return
        if self.version(probe.needs) is None:
            outcome.skipped = f"{probe.needs} is not installed"
            _say(f"{probe.name}: skipped, {outcome.skipped}")
            return
        load = os.getloadavg()[0]
        found = self._run(probe)
        if isinstance(found, str):
            outcome.errors.append(found)
            _say(f"{probe.name}: failed: {found}")
        else:
            outcome.add({**found, LOAD: load})
            _say(f"{probe.name}: " + ", ".join(f"{key} {value:.5g}" for key, value in found.items()))

    def _python(self, distribution: str) -> str | None:
        if distribution == "pitchpipe":
            return sys.executable
        # Absolute, since probes run in other folders; not resolved, since a link leads out of the environment.
        return str(self.peers.absolute() / "bin" / "python") if self.peers is not None else None

    def _run(self, probe: Probe) -> dict[str, float] | str:
        """Return the numbers that a probe measured, or why there are none."""
        folder = Path(tempfile.mkdtemp(prefix="bench-"))
        mark = uuid.uuid4().hex
        command = [self._python(probe.needs) or "", str(PROBES / probe.script)]
        command += ["--size", str(probe.quick if self.quick else probe.size), *probe.options]
        try:
            with (folder / "output").open("wb") as output:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=_environment(folder, mark, command[0]),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                return _numbers(process, probe.timeout, folder)
        finally:
            _end_leftovers(mark)
            shutil.rmtree(folder, ignore_errors=True)


def _environment(folder: Path, mark: str, python: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    runtime = folder / "run"
    runtime.mkdir(mode=0o700)
    return {
        **kept,
        "PATH": f"{Path(python).parent}{os.pathsep}{kept.get('PATH', '')}",
        "HOME": str(folder),
        "PITCHPIPE_RUNTIME_DIR": str(runtime),
        MARK: mark,
        "BENCHMARK_ANSWER": str(folder / "answer.json"),
        "BENCHMARK_BEGAN": repr(time.time()),
    }


def _numbers(process: subprocess.Popen[bytes], timeout: float, folder: Path) -> dict[str, float] | str:
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"not done after {timeout:g} s"
    answer = folder / "answer.json"
    if code == 0 and answer.exists():
        return json.loads(answer.read_text())
    lines = (folder / "output").read_text(errors="replace").strip().splitlines()
    return f"exit code {code}: {' | '.join(lines[-3:])}"


def _end_leftovers(mark: str) -> None:
    """End the processes that a probe left behind: a Ray, a web server, an agent."""
    if left := ProcessTree(None, f"{MARK}={mark}".encode()).kill(deadline=time.monotonic()):
        _say(f"left behind: processes {left}")


def _say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)
