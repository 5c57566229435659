"""Runs one experiment of the campaign: starts it, lets processes die as planned, resumes it until it is done."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from check import Findings, check_experiment
from plan import HERE, STEPS, TRIALS, Kill, Plan, Round

from pitchpipe.trial_agent import ProcessTree
from pitchpipe.trial_agent.watchdog import command_of

__all__ = ["Outcome", "run_experiment"]

MARK = "PPFAULTS_MARK"
LIFE = 60.0  # a manager that has not ended by then is stuck
LEAVE = {
    "local": 8.0,
    "ray": 40.0,
}  # seconds for the last processes to end; a private Ray ends after its idle time
RESUMES = 8
WORDS = {
    "agent": b"pitchpipe.trial_agent\0",
    "dispatcher": b"pitchpipe.dispatcher\0",
    "trial": b"trial.py\0",
    "watchdog": b"watchdog.py\0",
    "supervisor": b"pitchpipe.executors.private_ray.supervisor\0",
}
WORDS_ON_RAY = {**WORDS, "agent": b"ray::RayAgent"}


@dataclass
class Outcome:
    """What became of an experiment: the points at which processes died, the kills, and what was found wrong."""

    plan: Plan
    hits: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    findings: Findings = field(default_factory=Findings)
    lives: int = 0
    seconds: float = 0.0
    kept: Path | None = None


def run_experiment(plan: Plan, keep: Path, scratch: Path | None = None) -> Outcome:
    """Run the plan; if there is a problem, move the folder of the experiment to `keep`."""
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="pf-", dir=scratch or "/tmp"))
    laboratory = Laboratory(plan, folder)
    outcome = Outcome(plan)
    try:
        laboratory.run(outcome)
    finally:
        laboratory.end(outcome)
    outcome.seconds = time.monotonic() - began
    if outcome.findings.problems:
        outcome.kept = keep / f"{plan.place}-{plan.number}"
        shutil.rmtree(outcome.kept, ignore_errors=True)
        shutil.move(folder, outcome.kept)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


class Laboratory:
    """The folder, the environment and the processes of one experiment."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.mark = uuid.uuid4().hex
        self.experiment = folder / "lab" / "exp"
        for name in ("lab", "witness", "run", "hits-0"):
            (folder / name).mkdir(mode=0o700)
        self.environment = {
            **os.environ,
            MARK: self.mark,
            "PPFAULTS_WITNESS": str(folder / "witness"),
            "PPFAULTS_STEPS": str(STEPS),
            "PITCHPIPE_RUNTIME_DIR": str(folder / "run"),
        }

    def run(self, outcome: Outcome) -> None:
        """Run and resume until the experiment is done; then check what it has stored."""
        rounds = [*self.plan.rounds, *[Round()] * RESUMES]
        for number, each in enumerate(rounds):
            hits = self.folder / f"hits-{number}"
            hits.mkdir(exist_ok=True)
            code = self._live(number, each, hits, outcome)
            outcome.lives += 1
            if code is None:
                outcome.findings.note(
                    "stuck", f"life {number + 1} did not end within {LIFE:g} s: {self._status()}"
                )
                return
            if self._status()[0] == "DONE":
                break
        else:
            outcome.findings.note("stuck", f"not done after {len(rounds)} lives: {self._status()}")
            return
        outcome.findings.add(
            check_experiment(self.experiment, self.folder / "witness", expected_x(self.plan), STEPS)
        )

    def _live(self, number: int, each: Round, hits: Path, outcome: Outcome) -> int | None:
        """Run the manager once; return its exit code, None if it had to be killed."""
        with (self.folder / f"life-{number + 1}.log").open("w") as log:
            log.write(f"{each}\n")
            log.flush()
            process = subprocess.Popen(
                self._command(),
                env=self._environment(each, hits),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
            )
            try:
                return self._wait(process, each, outcome)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.wait()

    def _wait(self, process: subprocess.Popen[bytes], each: Round, outcome: Outcome) -> int | None:
        began = time.monotonic()
        for kill in sorted(each.kills, key=lambda kill: kill.after):
            pause, killed = kill.after, []
            while not killed and time.monotonic() < began + LIFE:
                try:
                    return process.wait(pause)
                except subprocess.TimeoutExpired:
                    killed, pause = self._kill(process, kill), 0.05  # as soon as there is one
            outcome.kills.update(killed)
        try:
            return process.wait(max(0.0, began + LIFE - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    def _kill(self, manager: subprocess.Popen[bytes], kill: Kill) -> list[str]:
        if kill.role == "manager":
            manager.kill()
            return ["manager"]
        word = (WORDS_ON_RAY if self.plan.place == "ray" else WORDS)[kill.role]
        for pid, line in self.processes():
            if word in line and b"start.py\0" not in line:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                return [kill.role]
        return []

    def _environment(self, each: Round, hits: Path) -> dict[str, str]:
        if not each.crashes:
            return self.environment
        path = os.pathsep.join(filter(None, [str(HERE / "hooks"), os.environ.get("PYTHONPATH", "")]))
        crashes = ",".join(f"{name}:{n}" for name, n in each.crashes)
        return {**self.environment, "PYTHONPATH": path, "PPFAULTS_CRASH": crashes, "PPFAULTS_HITS": str(hits)}

    def _command(self) -> list[str]:
        """Return the command that starts the experiment, or that resumes it if it exists."""
        if self._status()[0] != "":
            words = ["resume", "exp", "--dir", str(self.experiment.parent), "--json"]
            return [sys.executable, "-P", "-m", "pitchpipe", *words]
        shutil.rmtree(self.experiment, ignore_errors=True)
        plan = {
            "config": self.plan.config(),
            "directory": str(self.experiment.parent),
            "kind": self.plan.kind,
            "trial": str(HERE / "trial.py"),
        }
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan))
        return [sys.executable, "-P", str(HERE / "start.py"), str(path)]

    def _status(self) -> tuple[str, str]:
        """Return status and reason; empty if there is no experiment."""
        path = self.experiment / "experiment.db"
        if not path.exists():
            return "", ""
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return db.execute("SELECT status, reason FROM experiment").fetchone() or ("", "")
        except sqlite3.OperationalError:  # killed while its tables were made
            return "", ""
        finally:
            db.close()

    def processes(self) -> Iterator[tuple[int, bytes]]:
        """Yield the processes of this experiment: (pid, command line)."""
        for pid in ProcessTree(None, f"{MARK}={self.mark}".encode()).members():
            if line := command_of(pid):  # a zombie has none
                yield pid, line

    def end(self, outcome: Outcome) -> None:
        """Give the remaining processes time to end, then count and kill them; count the hits of crash points."""
        began, patience = time.monotonic(), LEAVE[self.plan.place]
        while (left := list(self.processes())) and time.monotonic() < began + patience:
            time.sleep(0.02 if time.monotonic() < began + 0.5 else 0.2)
        for pid, line in left:
            if not outcome.findings.stuck:
                words = line.replace(b"\0", b" ").decode(errors="replace")
                outcome.findings.note("orphans", f"process {pid} is left: {words[:200]}")
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for hits in self.folder.glob("hits-*"):  # agents may have died after the life in which they were made
            outcome.hits.update(os.listdir(hits))


def expected_x(plan: Plan) -> list[float]:
    """Return the parameters that the tuner proposes with the seed of the plan."""
    tuner: Any
    if plan.slow_tuner:
        import random

        draw = random.Random(plan.seed)
        return [draw.random() for _ in range(TRIALS)]
    from pitchpipe.tuners import create

    tuner = create("Random", seed=plan.seed)
    tuner.update_search_space(plan.config()["search_space"])
    return [tuner.generate_parameters(number)["x"] for number in range(TRIALS)]
