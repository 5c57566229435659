"""Runs one experiment of the campaign: starts it, lets processes die as planned, resumes it until it is done."""

from __future__ import annotations

import contextlib
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
from contextlib import closing
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from check import Findings, beginnings, check_experiment
from plan import FULL_DISK, HERE, PUT_BACK, Full, Kill, Plan, PutBack, Round
from system_calls import Call, Counts

from pitchpipe.store.errors import StoreError
from pitchpipe.store.store import Store
from pitchpipe.trial_agent import ProcessTree
from pitchpipe.trial_agent.watchdog import command_of

__all__ = ["Outcome", "SmallDisk", "run_experiment"]

MARK = "PPFAULTS_MARK"
QUIET = 60.0  # a manager is stuck if no file of its experiment has changed for so many seconds
LIFE = 1200.0  # or if it lives so long: it makes no progress
LEAVE = 60.0  # seconds for the last processes to end; a private Ray ends after its idle time
DISK = 24 * 2**20  # bytes of a small disk
RESUMES = 8
ILL = 4.0  # seconds for which calls fail
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
    calls: dict[tuple[str, str], int] = field(
        default_factory=dict
    )  # that its processes made, where they are counted


def run_experiment(
    plan: Plan, keep: Path, scratch: Path | None = None, library: Path | None = None
) -> Outcome:
    """Run the plan; if there is a problem, move the folder of the experiment to `keep`.

    A plan that has a call fail needs the `library` that does it.
    """
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="pf-", dir=scratch or "/tmp"))
    laboratory = Laboratory(plan, folder, library)
    outcome = Outcome(plan)
    try:
        laboratory.run(outcome)
    finally:
        laboratory.end(outcome)
    outcome.seconds = time.monotonic() - began
    outcome.calls = laboratory.counts.read() if laboratory.counts else {}
    if outcome.findings.problems:
        outcome.kept = keep / f"{plan.place}-{plan.number}"
        shutil.rmtree(outcome.kept, ignore_errors=True)
        shutil.move(folder, outcome.kept)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


class SmallDisk:
    """A disk of its own for an experiment: memory that is mounted, which only root may do."""

    def __init__(self, place: Path) -> None:
        self.place, self._filler = place, place / "filler"
        self.is_mounted = False

    def mount(self) -> bool:
        """Mount the disk; return whether that is allowed."""
        options = ["-t", "tmpfs", "-o", f"size={DISK},mode=700", "faults", str(self.place)]
        done = subprocess.run(["mount", *options], capture_output=True, check=False)
        self.is_mounted = done.returncode == 0
        return self.is_mounted

    def fill(self) -> None:
        """Write until nothing more can be written."""
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)

    def end(self, *, keep: bool) -> None:
        """Unmount the disk; keep what it holds in its place, if asked."""
        if not self.is_mounted:
            return
        self.free()
        aside = self.place.with_name("kept")
        if keep:
            shutil.copytree(self.place, aside, symlinks=True)
        subprocess.run(["umount", "--lazy", str(self.place)], check=True)
        self.is_mounted = False
        if keep:
            self.place.rmdir()
            aside.rename(self.place)


class Laboratory:
    """The folder, the environment and the processes of one experiment."""

    def __init__(
        self, plan: Plan, folder: Path, library: Path | None = None, record: Path | None = None
    ) -> None:
        self.plan, self.folder, self.witness = plan, folder, folder / "witness"
        self._library, self._record = library, record
        self.forgotten: set[str] = set()  # runs that the database may know nothing of
        self.counts: Counts | None = None  # of the latest life in which a call fails
        self.quiet = QUIET
        self.mark = uuid.uuid4().hex
        self.experiment = folder / "lab" / "exp"
        for name in ("lab", "witness", "run", "hits-0"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        self.disk = SmallDisk(folder / "lab")
        self._existed = False
        self._copied = 0.0
        self._put_back = 0.0
        self.environment = {
            **os.environ,
            MARK: self.mark,
            "PPFAULTS_WITNESS": str(self.witness),
            "PPFAULTS_STEPS": str(plan.steps),
            "PITCHPIPE_RUNTIME_DIR": str(folder / "run"),
        }

    def run(self, outcome: Outcome) -> None:
        """Run and resume until the experiment is done; then check what it has stored."""
        if self.plan.small_disk:
            self.disk.mount()
        try:
            self._run(outcome)
        except StoreError as error:
            outcome.findings.note("lost", f"the database cannot be read: {error}")

    def _run(self, outcome: Outcome) -> None:
        rounds = [*self.plan.rounds, *[Round()] * RESUMES]
        for number, each in enumerate(rounds):
            hits = self.folder / f"hits-{number}"
            hits.mkdir(exist_ok=True)
            code = self._live(number, each, hits, outcome)
            outcome.lives += 1
            if code is None:
                outcome.findings.note("stuck", f"life {number + 1} makes no progress: {self._status()}")
                return
            if self._status()[0] == "DONE":
                break
            self._between(each, hits)
        else:
            outcome.findings.note("stuck", f"not done after {len(rounds)} lives: {self._status()}")
            return
        outcome.findings.add(
            check_experiment(
                self.experiment,
                self.witness,
                expected_x(self.plan),
                self.plan.steps,
                self._forgotten() | self.forgotten,
            )
        )

    def _between(self, each: Round, hits: Path) -> None:
        """Do what happens while no manager lives."""
        if each.orphaned:
            self._kill("agent")
        copy = self.folder / "copy.db"
        if copy.exists():
            for path in self.experiment.glob("experiment.db*"):
                path.unlink()
            shutil.move(copy, self.experiment / "experiment.db")
            self._put_back = time.time()
            (hits / PUT_BACK).touch()

    def _forgotten(self) -> set[str]:
        """Return the runs that began after the database was copied, and before a manager with the copy started any."""
        if not self._put_back:
            return set()
        starts = "SELECT start_time FROM trials UNION SELECT start_time FROM attempts"
        first = f"SELECT min(start_time) FROM ({starts}) WHERE start_time > ?"
        with closing(self._read_only()) as db:
            ((until,),) = db.execute(first, (self._put_back,))
        began = beginnings(self.witness)
        return {run for run, second in began.items() if self._copied < second < (until or inf)}

    def _read_only(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.experiment / 'experiment.db'}?mode=ro", uri=True)

    def _copy_database(self) -> None:
        """Copy the database as of now."""
        self._copied = time.time()
        with (
            closing(self._read_only()) as source,
            closing(sqlite3.connect(self.folder / "copy.db")) as target,
        ):
            source.backup(target)

    def _live(self, number: int, each: Round, hits: Path, outcome: Outcome) -> int | None:
        """Run the manager once; return its exit code, None if it had to be killed."""
        if each.call is not None:
            self.counts = Counts(self.folder / f"counts-{number}")
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
                return self._wait(process, each, hits, outcome)
            finally:
                self.disk.free()
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                if each.call is not None and "Traceback (most" in Path(log.name).read_text(errors="replace"):
                    outcome.findings.note("unexplained", f"life {number + 1} printed a traceback")

    def _wait(
        self, process: subprocess.Popen[bytes], each: Round, hits: Path, outcome: Outcome
    ) -> int | None:
        """Return the exit code of a manager, None if it is stuck; meanwhile, let happen what is planned."""
        deeds = self._deeds(process, each, hits, outcome)
        began = changed = time.monotonic()
        traces = self._traces()
        while True:
            deeds = [deed for deed in deeds if next(deed, None) is not None]
            try:
                return process.wait(0.02 if deeds else 1.0)
            except subprocess.TimeoutExpired:
                now = time.monotonic()
                if now > changed + 1.0 and traces != (traces := self._traces()):
                    changed = now
                if now > changed + self.quiet or now > began + LIFE:
                    return None

    def _deeds(
        self, process: subprocess.Popen[bytes], each: Round, hits: Path, outcome: Outcome
    ) -> list[Iterator[str]]:
        """Return what is to happen in a life; each yields while that is to come."""
        deeds = [self._attack(process, kill, outcome) for kill in each.kills]
        deeds += [self._copy_and_kill(process, each.put_back)] if each.put_back is not None else []
        deeds += [self._fill(each.full, hits)] if each.full is not None and self.disk.is_mounted else []
        deeds += [self._heal(each.call)] if each.call is not None and each.call.lasts else []
        return deeds

    def _attack(self, manager: subprocess.Popen[bytes], kill: Kill, outcome: Outcome) -> Iterator[str]:
        """Kill a process after some seconds, as soon as there is one; yield while that is to come."""
        until = time.monotonic() + kill.after
        while time.monotonic() < until:
            yield "waiting"
        while not (killed := self._kill(kill.role, manager)):
            yield "looking"
        outcome.kills.update(killed)

    def _copy_and_kill(self, manager: subprocess.Popen[bytes], plan: PutBack) -> Iterator[str]:
        results = self._results()
        while self._results() < results + plan.after:
            yield "waiting"
        self._copy_database()
        while self._results() < results + plan.killed_after:
            yield "copied"
        manager.kill()

    def _fill(self, plan: Full, hits: Path) -> Iterator[str]:
        results = self._results()
        while self._results() < results + plan.after:
            yield "waiting"
        self.disk.fill()
        (hits / FULL_DISK).touch()
        until = time.monotonic() + plan.seconds
        while time.monotonic() < until:
            self.disk.fill()  # what the experiment has given up meanwhile
            yield "full"
        self.disk.free()

    def _heal(self, call: Call) -> Iterator[str]:
        """Let no more calls fail, some seconds after the first one did."""
        assert self.counts is not None
        while self.counts.read()[call.role, call.family] < call.n:
            yield "well"
        until = time.monotonic() + ILL
        while time.monotonic() < until:
            yield "ill"
        self.counts.heal()

    def _results(self) -> int:
        """Return how many lines the trials have noted."""
        return sum(path.read_bytes().count(b"\n") for path in self.witness.iterdir())

    def _traces(self) -> list[tuple[str, int]]:
        """Return when the files of the experiment and of the trials were changed."""
        found = []
        for folder, _, names in os.walk(self.folder):  # it passes over what is removed meanwhile
            for path in [os.path.join(folder, name) for name in names]:
                with contextlib.suppress(FileNotFoundError):
                    found.append((path, os.lstat(path).st_mtime_ns))
        return found

    def _kill(self, role: str, manager: subprocess.Popen[bytes] | None = None) -> list[str]:
        """Kill one process with this role; return its role if there was one."""
        if role == "manager":
            assert manager is not None
            manager.kill()
            return [role]
        word = (WORDS_ON_RAY if self.plan.place == "ray" else WORDS)[role]
        for pid, line in self.processes():
            if word in line and b"start.py\0" not in line:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                return [role]
        return []

    def _environment(self, each: Round, hits: Path) -> dict[str, str]:
        if self._library is not None and (each.call is not None or self._record is not None):
            return {
                **self.environment,
                "LD_PRELOAD": str(self._library),
                "PPFAULTS_COUNTS": str(self.counts.path if self.counts else ""),
                "PPFAULTS_CALLS": str(each.call or ""),
                "PPFAULTS_RECORD": str(self._record or ""),
                "PPFAULTS_ROOT": str(self.folder),
            }
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
        """Return status and reason, or empty texts; raise `StoreError` if what existed cannot be read."""
        try:
            store = Store.view(self.experiment / "experiment.db")
        except StoreError:
            if self._existed:
                raise
            return "", ""  # killed while its tables were made
        with closing(store):
            row = store.experiment()
            self._existed = True
            return row.status, row.reason or ""

    def processes(self) -> Iterator[tuple[int, bytes]]:
        """Yield the processes of this experiment: (pid, command line)."""
        for pid in ProcessTree(None, f"{MARK}={self.mark}".encode()).members():
            if line := command_of(pid):  # a zombie has none
                yield pid, line

    def end(self, outcome: Outcome) -> None:
        """Give the remaining processes time to end, then count and kill them; count the hits of crash points."""
        began = time.monotonic()
        while (left := list(self.processes())) and time.monotonic() < began + LEAVE:
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
        self.disk.end(keep=bool(outcome.findings.problems))


def expected_x(plan: Plan) -> list[float]:
    """Return the parameters that the tuner proposes with the seed of the plan."""
    tuner: Any
    if plan.slow_tuner:
        import random

        draw = random.Random(plan.seed)
        return [draw.random() for _ in range(plan.trials)]
    from pitchpipe.tuners import create

    tuner = create("Random", seed=plan.seed)
    tuner.update_search_space(plan.config()["search_space"])
    return [tuner.generate_parameters(number)["x"] for number in range(plan.trials)]
