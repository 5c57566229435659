"""Runs one simulated experiment: managers live and die, faults happen, users ask, and at the end all is compared."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import checker
import edges
import processes
import rare_branches
from machine import Machine, Process
from plan import SimulationPlan
from simulated_trial import train, witness

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.errors import ExecutorError
from pitchpipe.manager.control import RunningManager, steering
from pitchpipe.manager.control.connection import ControlError, manager_status
from pitchpipe.manager.experiment_factory import create_experiment, resume_experiment
from pitchpipe.store import ExperimentFolder, FolderError, Store, StoreError

__all__ = ["Result", "run_experiment"]

_CALM = 3000.0  # virtual seconds in which an experiment without faults comes to its end
_LEAVE = 700.0  # and in which what it has started is gone
_SLACK = 5.0  # seconds that a wait may take beyond its bound: others may have the turn
_MOVES_BOUNDS = {
    "manager frozen",
    "clock set",
    "disk full",
    "database put back",
}  # the manager acts later, or by another clock


@dataclass
class Result:
    """What became of an experiment."""

    digest: str = ""
    problems: list[str] = field(default_factory=list)
    hits: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    virtual: float = 0.0
    lives: int = 0
    acknowledged: int = 0
    log: list[str] = field(default_factory=list)


def run_experiment(
    plan: SimulationPlan, root: Path, *, logged: bool = False, keep: Path | None = None
) -> Result:
    """Run the plan to its end in a new folder `root`; the calling process can do that once."""
    machine = Machine(plan.seed)
    machine.switching = plan.switching
    machine.log = [] if logged else None
    os.environ.update(
        PITCHPIPE_RUNTIME_DIR=str(root / "r"),
        PITCHPIPE_DIR=str(root / "e"),
        HOME=str(root),
        NNI_CHECKPOINT_DIRECTORY=str(root / "e" / "exp" / "checkpoint"),
    )
    (root / "code").mkdir(parents=True)
    laboratory = Laboratory(plan, machine, root)
    edges.activate(machine, laboratory.refuses)
    laboratory.watch_product()
    machine.run(laboratory.process, laboratory.run)
    result = Result(
        digest=machine.digest,
        problems=[*laboratory.problems, *(f"crashed: {each}" for each in machine.crashes)],
        hits=machine.hits,
        turns=machine.turns,
        virtual=machine.now,
        lives=laboratory.lives,
        acknowledged=sum(len(run.notes) for run in witness.runs),
        log=machine.log or [],
    )
    if machine.failure:
        result.problems.insert(0, f"stuck: {machine.failure}")
    if result.problems and keep is not None:
        shutil.rmtree(keep, ignore_errors=True)
        shutil.copytree(
            root, keep, ignore=lambda folder, names: [each for each in names if each.endswith(".sock")]
        )
    shutil.rmtree(root, ignore_errors=True)
    return result


class Laboratory:
    """What surrounds the product: whoever starts managers, kills processes, and asks."""

    def __init__(self, plan: SimulationPlan, machine: Machine, root: Path) -> None:
        self.plan, self.machine, self.root = plan, machine, root
        self.process = machine.process("laboratory", "laboratory")
        self.draw = machine.draw
        self.seen = checker.Seen()
        self.problems: list[str] = []
        self.lives = 0
        self.is_calm = False
        self.is_full = False
        self.has_errors = False
        self.manager: Process | None = None
        self.copy: Path | None = None
        self._armed: set[str] = set()
        self.folder = ExperimentFolder(root / "e" / "exp")
        witness.steps, witness.pause, witness.saves = plan.steps, plan.pause, plan.saves
        data = {**plan.config, "trial_code_directory": str(root / "code")}
        self.config = ExperimentConfig.from_dict(data, needs_command=plan.kind == "command")

    # ------------------------------------------------------------------ the story

    def run(self) -> None:
        """Let managers live until the experiment is done."""
        for fault, every in self.plan.faults.items():
            self._again_and_again(fault, every, self._fault, fault)
        for user, every in self.plan.users.items():
            self._again_and_again(f"user {user}", every, self._user, user)
        for _ in range(self.plan.lives):
            if self._live(self.draw.expovariate(1 / 60)) == "DONE":
                break
            self.machine.sleep(self.draw.choice((0.1, 1.0, 8.0, 30.0)) * self.draw.random())
        self.is_calm, self.is_full, self.has_errors = True, False, False
        self.machine.note("no more faults")
        for _ in range(6):
            status = self._live(_CALM)
            if status == "DONE":
                break
        else:
            self.problems.append(f"unended: the experiment is {status} after six calm lives")
        self._await_the_end_of_all()
        self.problems += checker.check(
            self.folder.path,
            witness,
            self.seen,
            is_fixed=self.plan.tuner != "PBT",
            has_budgets=self.plan.tuner in ("PBT", "ASHA", "Hyperband"),
            may_forget=self.plan.forgets,
        )

    def _again_and_again(self, name: str, every: float, act: Callable[[str], None], what: str) -> None:
        def run() -> None:
            while not self.is_calm:
                self.machine.sleep(self.draw.expovariate(1 / every))
                if not self.is_calm:
                    act(what)

        self.machine.spawn(self.process, name, run)

    def _live(self, longest: float) -> str:
        """Let a manager live; return the status that it leaves, or how it ended."""
        self.lives += 1
        manager = self.manager = self.machine.process("manager", f"manager {self.lives}")
        began = self.machine.now
        self.machine.spawn(manager, "main", self._manage, manager)
        self.machine.wait(lambda: not manager.is_alive, longest)
        if manager.is_alive and self.is_calm:
            self.problems.append(f"stuck: the experiment does not end: {self._why_not()}")
            self.machine.kill(manager)
        elif manager.is_alive:
            self.machine.hits["manager killed after a while"] += 1
            self.machine.kill(manager)
        self.machine.note(f"a life of {self.machine.now - began:.1f} s")
        self._put_back()
        return self._status()

    def _status(self) -> str:
        if not self.folder.has_experiment:
            return "none"
        try:
            trials, metrics = checker.read(self.folder.database)
            self.seen.look(trials, metrics)
            store = Store.view(self.folder.database)
            try:
                return store.experiment().status
            finally:
                store.close()
        except (StoreError, sqlite3.Error) as error:
            return f"unreadable: {error}"

    def _why_not(self) -> str:
        living = [f"{each.name} ({each.frozen_until:.0f})" for each in processes.living()]
        try:
            said: Any = manager_status(self.folder.path)
        except ControlError as error:
            said = str(error)
        trials, _ = checker.read(self.folder.database)
        return f"{said}; {[(t['sequence_id'], t['status'], t['agent']) for t in trials]}; {living}"

    def _await_the_end_of_all(self) -> None:
        def others() -> list[Process]:
            return [each for each in processes.living() if each.role not in ("laboratory", "user")]

        if not self.machine.wait(lambda: not others(), _LEAVE):
            self.problems.append(f"orphans: {', '.join(each.name for each in others())}")

    # ------------------------------------------------------------------ a manager

    def _manage(self, process: Process) -> None:
        """Do what `pitchpipe run` or `resume` does."""
        at, code = self.machine, 0
        at.sleep(self.draw.uniform(0.0, 0.2))
        loop = edges.SimulatedLoop()
        process.at_end.append(lambda: [os.close(each) for each in loop.descriptors()])
        process.at_end.append(logging.getLogger("pitchpipe").handlers.clear)
        try:
            manager = self._made() if not self.folder.has_experiment else self._resumed()
        except (FolderError, StoreError, OSError) as error:
            at.note(f"not started: {type(error).__name__}")
            at.hits[f"not started: {type(error).__name__}"] += 1
            at.end(process, 1)
            return
        try:
            loop.run_until_complete(self._serve(manager))
        except (ExecutorError, StoreError) as error:
            at.note(f"ended: {type(error).__name__}: {error}".replace(str(self.root), ""))
            at.hits[f"ended by {type(error).__name__}"] += 1
            code = 1
        except OSError as error:
            if not (self.is_full or self.has_errors or "disk full" in self.plan.faults):
                self.problems.append(f"unexplained: {traceback.format_exc()}")
            at.hits[f"ended by {type(error).__name__}"] += 1
            code = 1
        except Exception:  # noqa: BLE001 (it is a finding)
            self.problems.append(f"unexplained: {traceback.format_exc()}")
            code = 1
        manager.store.close()
        manager.folder.disown()
        at.end(process, code)

    async def _serve(self, manager: Any) -> None:
        self.machine.current.process.manager = manager  # type: ignore[attr-defined]
        async with RunningManager(manager, warn=lambda text: None) as host:
            await host.wait()

    def _made(self) -> Any:
        if self.folder.path.exists():
            self.machine.hits["experiment began again"] += 1
            shutil.rmtree(self.folder.path)
        return create_experiment(
            self.config,
            directory=self.root / "e",
            experiment_id="exp",
            function=train if self.plan.kind == "function" else None,
        )

    def _resumed(self) -> Any:
        self.machine.hits["experiment resumed"] += 1
        return resume_experiment(ExperimentFolder.find(self.root / "e", "exp"))

    # ------------------------------------------------------------------ faults

    def refuses(self, process: Process, what: str) -> int | None:
        """Return the error with which the disk refuses a call."""
        if self.is_full and process.role != "laboratory":
            return edges.ENOSPC
        if self.has_errors and process.role in ("agent", "trial") and self.draw.random() < 0.05:
            self.machine.hits["disk error"] += 1
            return edges.EIO
        return None

    def _victim(self, role: str) -> Process | None:
        victims = processes.living(role)
        return self.draw.choice(victims) if victims else None

    def _fault(self, fault: str) -> None:
        role = fault.partition(" ")[0]
        if role in ("manager", "agent", "trial", "dispatcher"):
            if (victim := self._victim(role)) is None:
                return
            self._harm(victim, fault)
        elif fault.startswith("connection"):
            self._disturb(fault)
        elif fault == "database put back":
            self._copy()
        elif fault == "clock set":
            self.machine.wall_offset += self.draw.choice((-3600.0, -5.0, 5.0, 3600.0))
            self._hit(fault)
        else:
            self._spoil_disk(fault)

    def _copy(self) -> None:
        """Keep a copy of the database, which comes back when this manager has died."""
        if self.copy is not None or not self.folder.has_experiment:
            return
        copy = self.root / "copy.db"
        with closing(sqlite3.connect(self.folder.database)) as db, closing(sqlite3.connect(copy)) as other:
            try:
                db.backup(other)
            except sqlite3.Error:
                return
        self.copy = copy

    def _put_back(self) -> None:
        if self.copy is None or self.is_calm:
            return
        self._hit("database put back")
        for suffix in ("-wal", "-shm"):
            Path(f"{self.folder.database}{suffix}").unlink(missing_ok=True)
        self.copy.replace(self.folder.database)
        self.copy = None

    def _hit(self, what: str) -> None:
        self.machine.hits[what] += 1
        self.machine.note(what)

    def _harm(self, victim: Process, fault: str) -> None:
        if fault.endswith("at a call"):
            if victim.dies_at is None:
                victim.dies_at = victim.steps + self.draw.randint(1, self.draw.choice((5, 50, 300)))
        elif fault.endswith("killed"):
            self._hit(fault)
            self.machine.kill(victim)
        else:
            self._hit(fault)
            longest = {"agent silent": 150.0, "dispatcher hangs": 60.0}.get(fault, 8.0)
            self.machine.freeze(victim, longest * self.draw.random())

    def _disturb(self, fault: str) -> None:
        agent = self._victim("agent")
        manager = getattr(self.manager, "manager", None)
        if agent is None or manager is None or self.manager is None or not self.manager.is_alive:
            return
        name = agent.name.partition(" ")[2]
        link = manager.executor._links.get(name)
        connection = getattr(getattr(agent, "server", None), "_manager", None)
        transport = getattr(link, "_transport", None)
        if connection is None or transport is None or connection.socket.fileno() < 0:
            return
        self._hit(fault)
        if fault != "connection silent" and self.draw.random() < 0.7:
            self._armed.add(fault)  # with what has arrived by then
        elif fault == "connection silent":
            end = self.draw.choice((connection.descriptor, transport.get_extra_info("socket").fileno()))
            edges.delay(end, self.draw.expovariate(1 / 4.0))
        elif fault.endswith("agent"):
            connection.socket.shutdown(2)
        else:
            transport.get_extra_info("socket").shutdown(2)

    def _break_connections(self) -> None:
        """Let an armed fault close a connection when something has arrived, which is lost with it."""
        from pitchpipe.executors.socket_link import SocketLink
        from pitchpipe.trial_agent.unix_server import UnixServer

        receive, serve = SocketLink.data_received, UnixServer._serve_manager

        def data_received(link: Any, data: bytes) -> None:
            if self._strikes("connection closed by the manager"):
                link._transport.abort()
            else:
                receive(link, data)

        def serve_manager(server: Any, connection: Any) -> None:
            if self._strikes("connection closed by the agent"):
                server._drop_manager()
            else:
                serve(server, connection)

        SocketLink.data_received = data_received  # type: ignore[method-assign]
        UnixServer._serve_manager = serve_manager  # type: ignore[method-assign]

    def _strikes(self, fault: str) -> bool:
        if fault not in self._armed or self.draw.random() < 0.7:
            return False
        self._armed.discard(fault)
        self.machine.note(f"{fault}, with what it holds")
        return True

    def _spoil_disk(self, fault: str) -> None:
        self._hit(fault)
        name = "is_full" if fault == "disk full" else "has_errors"
        setattr(self, name, True)
        self.machine.sleep(self.draw.expovariate(1 / 3.0))
        setattr(self, name, False)
        self.machine.note(f"no more: {fault}")

    # ------------------------------------------------------------------ users

    def _user(self, user: str) -> None:
        """Have a user ask something; what is refused changes nothing."""
        if not self.folder.has_experiment:
            return
        try:
            getattr(self, f"_{user}")()
            self._hit(f"user {user}")
        except ControlError as error:
            self.machine.hits[f"user {user}: {error.kind}"] += 1
            if error.kind == "failed":
                self.problems.append(f"failed: a user {user}: {error}")
        except (FolderError, StoreError) as error:
            self.machine.hits[f"user {user}: {type(error).__name__}"] += 1

    def _adds(self) -> None:
        x = self.draw.random()
        self.seen.added[steering.add_trial(self.folder, {"x": x})["trial_id"]] = x

    def _some_trial(self) -> int:
        trials, _ = checker.read(self.folder.database)
        return self.draw.randrange(len(trials)) if trials else 0

    def _reruns(self) -> None:
        steering.rerun_trial(self.folder, self._some_trial())

    def _kills(self) -> None:
        killed = steering.kill_trial(self.folder, self._some_trial())
        self.seen.killed[killed["trial_id"]] = self.machine.now

    def _imports(self) -> None:
        x = self.draw.random()
        steering.import_results(self.folder, [{"parameter": {"x": x}, "value": x}])

    def _changes(self) -> None:
        name, value = self.draw.choice(
            (
                ("trial_concurrency", self.draw.randint(1, 4)),
                ("max_trial_number", self.draw.randint(2, 12)),
            )
        )
        canonical = {"trial_concurrency": "trialConcurrency", "max_trial_number": "maxTrialNumber"}[name]
        try:
            steering.change_experiment(self.folder, {name: value})
        except ControlError as error:
            if error.kind == "unreachable":
                self.seen.asked(canonical, value)
            raise
        self.seen.granted(canonical, value)

    def _stops(self) -> None:
        steering.stop_experiment(self.folder)

    def _looks(self) -> None:
        trials, metrics = checker.read(self.folder.database)
        self.seen.look(trials, metrics)
        status = manager_status(self.folder.path)
        for trial_id, why in status["waiting"].items():
            if not why:
                self.problems.append(f"waiting: trial {trial_id} waits without a reason")
        if not _MOVES_BOUNDS.intersection(self.plan.faults):
            self._check_bounds(status["waits"])

    def _check_bounds(self, waits: Sequence[Mapping[str, Any]]) -> None:
        """Note what has been waited for longer than its bound says."""
        for wait in waits:
            self.machine.hits["wait seen by a user"] += 1
            if wait["since"] is None or wait["longest"] is None:
                continue
            over = self.machine.time() - wait["since"] - wait["longest"]
            if over > _SLACK:
                self.problems.append(f"waiting: {wait['what']} for {over:.0f} s too long")

    # ------------------------------------------------------------------ rare branches

    def watch_product(self) -> None:
        """Count how often the rare branches of the product are taken, and prepare what breaks its connections."""
        rare_branches.plant(self.machine)
        self._break_connections()
