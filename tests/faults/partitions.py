"""A cluster whose network fails: a Ray of two nodes in network namespaces, between which packets get lost.

    python -P tests/faults/partitions.py [--only NAME ...] [--kinds command function] [--seed 1]

Each case is an experiment that runs on both nodes, with its manager on the head. While trials report, the network (or
the head) fails for some seconds. Whatever was acknowledged is there at the end and counts once, and the experiment
comes to its end; work may be repeated. Needs root, `ip`, `tc`, `unshare` and `nsenter`. See docs/reference/faults.md.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent))

from campaign import Campaign
from check import beginnings
from laboratory import QUIET, Laboratory, Outcome
from plan import Plan, Round

__all__ = ["CASES", "Cluster", "can_partition", "main", "run_case", "short_folder"]

TOOLS = ("ip", "tc", "unshare", "nsenter")
HEAD, NODE, PORT = "10.77.0.1", "10.77.0.2", 6399
LOSS, SLOW = "pfifo limit 0", "tbf rate 500kbit burst 8kb latency 1s"
_START = 60.0  # seconds for Ray to start


@dataclass(frozen=True)
class Case:
    """What fails, and for how many seconds: packets `to_node`, `to_head`, or the processes of the head.

    With `calls` some of Ray's own calls fail all the time, by its means for that.
    """

    seconds: float
    to_node: str = ""
    to_head: str = ""
    is_frozen: bool = False
    calls: str = ""


CASES = {
    **{f"cut-{seconds}": Case(seconds, LOSS, LOSS) for seconds in (1, 10, 100)},
    **{f"deaf-node-{seconds}": Case(seconds, to_node=LOSS) for seconds in (10, 40)},
    **{f"mute-node-{seconds}": Case(seconds, to_head=LOSS) for seconds in (10, 40)},
    "slow": Case(20, SLOW, SLOW),
    **{f"frozen-head-{seconds}": Case(seconds, is_frozen=True) for seconds in (5, 30)},
    "calls": Case(
        0, calls=json.dumps({"*": {"num_failures": -1, "req_failure_prob": 5, "resp_failure_prob": 5}})
    ),
}


def can_partition() -> str:
    """Return why this machine cannot do this; empty if it can."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"there is no {', '.join(missing)}"
    script = f"ip link add link0 type veth peer name link1 && tc qdisc add dev link0 root {LOSS}"
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "sh", "-c", script],
        capture_output=True,
        check=False,
        text=True,
    )
    return tried.stderr.strip()


def short_folder() -> Path:
    """Return a new folder whose name leaves room for the sockets in it."""
    return Path(tempfile.mkdtemp(prefix="pf-", dir="/tmp"))


class Cluster:
    """A head and a node of Ray, each in a network of its own, with one link between them.

    The node has another name, and other files in `labs` and `ray`, so that nothing but the link joins it to the head.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.labs, self.witnesses = folder / "labs", folder / "witnesses"
        self._calls = ""
        self._token = folder / "token"
        self._token.write_text(secrets.token_hex(32))
        self._keepers = [
            subprocess.Popen(
                [
                    "unshare",
                    "--net",
                    "--uts",
                    "--mount",
                    "sh",
                    "-c",
                    "echo; exec cat",
                ],  # until this process ends
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        for keeper in self._keepers:
            assert keeper.stdout is not None
            keeper.stdout.readline()
        for path in (self.labs, self.witnesses, folder / "ray"):
            path.mkdir()
            if path != self.witnesses:
                self._within(1, f"mount -t tmpfs tmpfs {path}")
        self._within(1, "hostname another-node")
        self._rays: list[subprocess.Popen[bytes] | None] = [None, None]
        self._within(0, f"ip link add link0 type veth peer name link1 netns {self._keepers[1].pid}")
        for side, address in enumerate((HEAD, NODE)):
            self._within(side, f"ip addr add {address}/24 dev link{side}")
            self._within(side, f"ip link set link{side} up")
            self._within(side, "ip link set lo up")

    @property
    def environment(self) -> dict[str, str]:
        """What connects to this cluster, and to no other."""
        calls = {"RAY_testing_rpc_failure": self._calls} if self._calls else {}
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self._token), **calls}

    def enter(self, side: int) -> list[str]:
        """Return the words before a command that runs on the head (0) or on the node (1)."""
        return ["nsenter", "--net", "--uts", "--mount", "--target", str(self._keepers[side].pid)]

    def start(self, calls: str = "") -> None:
        """Start what does not run: Ray ends the processes of a node that it has given up."""
        if calls != self._calls:
            self._end(1)
            self._end(0)
            self._calls = calls
        head = f"--head --port {PORT} --include-dashboard false --temp-dir {self._folder / 'ray'}"
        for side, (address, role) in enumerate(((HEAD, head), (NODE, f"--address {HEAD}:{PORT}"))):
            ray = self._rays[side]
            if ray is not None and ray.poll() is None and len(self._alive()) == 2:
                continue
            if ray is not None:
                self._end(side)
            words = f"start --block --node-ip-address {address} --num-cpus 1 --object-store-memory 80000000 {role}"
            command = [*self.enter(side), sys.executable, "-P", "-m", "ray.scripts.scripts", *words.split()]
            with (self._folder / f"ray-{side}.log").open("ab") as log:
                self._rays[side] = subprocess.Popen(
                    command,
                    env={**os.environ, **self.environment},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            until = time.monotonic() + _START
            while len(self._alive()) <= side:
                if time.monotonic() > until:
                    raise SystemExit(f"Ray does not start: see {log.name}")
                time.sleep(0.2)

    def fail(self, case: Case) -> None:
        """Lose packets, or freeze the head."""
        for side, discipline in enumerate((case.to_node, case.to_head)):
            if discipline:
                self._within(side, f"tc qdisc add dev link{side} root {discipline}")
        if case.is_frozen:
            self._signal_head(signal.SIGSTOP)

    def heal(self) -> None:
        """Undo that."""
        for side in range(2):
            self._within(side, f"tc qdisc del dev link{side} root", check=False)
        self._signal_head(signal.SIGCONT)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self._signal_head(signal.SIGCONT)
        for side in (1, 0):
            self._end(side)
            self._keepers[side].kill()
            self._keepers[side].communicate()  # closes the pipes, too

    def _alive(self) -> list[str]:
        """Return the nodes that Ray knows to be alive, none before it replies."""
        program = (
            "from ray._raylet import GcsClient;"
            f"infos = GcsClient(address='{HEAD}:{PORT}').get_all_node_info(timeout=2).values();"
            "print(*(info.node_id.hex() for info in infos if info.state == 0))"
        )
        command = [*self.enter(0), sys.executable, "-P", "-c", program]
        environment = {**os.environ, **self.environment, "RAY_py_gcs_connect_timeout_s": "2"}
        done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
        return done.stdout.split() if done.returncode == 0 else []

    def _within(self, side: int, words: str, *, check: bool = True) -> None:
        subprocess.run([*self.enter(side), *words.split()], check=check, capture_output=True)

    def _processes(self, side: int) -> list[psutil.Process]:
        ray = self._rays[side]
        if ray is None or not psutil.pid_exists(ray.pid):
            return []
        process = psutil.Process(ray.pid)
        return [process, *process.children(recursive=True)]

    def _signal_head(self, number: signal.Signals) -> None:
        for process in self._processes(0):
            if process.name() in ("gcs_server", "raylet"):
                process.send_signal(number)

    def _end(self, side: int) -> None:
        for process in self._processes(side):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        if (ray := self._rays[side]) is not None:
            ray.wait()
            self._rays[side] = None


@dataclass(frozen=True)
class OnCluster(Plan):
    """An experiment on the cluster."""

    environment: tuple[tuple[str, str], ...] = ()

    def config(self) -> dict[str, Any]:
        """Return the config of the experiment."""
        service = {
            "platform": "ray",
            "address": f"{HEAD}:{PORT}",
            "runtime_env": {"env_vars": dict(self.environment)},
            "reconnect_timeout": 300,
        }
        return {**super().config(), "training_service": service, "orphan_timeout": 20}


class Partition(Laboratory):
    """An experiment during which a case happens."""

    def __init__(self, plan: OnCluster, folder: Path, cluster: Cluster, case: Case) -> None:
        super().__init__(plan, folder)
        self.witness = cluster.witnesses / folder.name
        self.witness.mkdir()
        self.environment["PPFAULTS_WITNESS"] = str(self.witness)
        names = [name for name in self.environment if name.startswith(("PPFAULTS", "PITCHPIPE"))]
        passed = tuple((name, self.environment[name]) for name in names)
        self.plan = replace(plan, environment=passed)
        self.environment |= cluster.environment
        self.quiet = QUIET + case.seconds
        self.given_up = 0  # runs of trials that were retried
        self._cluster, self._case = cluster, case

    def _command(self) -> list[str]:
        return [*self._cluster.enter(0), *super()._command()]

    def _deeds(
        self, process: subprocess.Popen[bytes], each: Round, hits: Path, outcome: Outcome
    ) -> list[Iterator[str]]:
        return [*super()._deeds(process, each, hits, outcome), self._fail()]

    def _fail(self) -> Iterator[str]:
        while not self._runs_on_both():
            yield "well"
        self._cluster.fail(self._case)
        until = time.monotonic() + self._case.seconds
        while time.monotonic() < until:
            yield "ill"
        self._cluster.heal()

    def _runs_on_both(self) -> bool:
        """Return whether two trials report; there is a processor for one on each node."""
        if not self.experiment.joinpath("experiment.db").exists():
            return False
        reporting = "SELECT count(DISTINCT sequence_id) FROM metrics JOIN trials USING (sequence_id)"
        with closing(self._read_only()) as db:
            try:
                return db.execute(f"{reporting} WHERE status = 'RUNNING'").fetchone() == (2,)
            except sqlite3.OperationalError:  # its tables are being made
                return False

    def _forgotten(self) -> set[str]:
        """Return the runs whose final result is not the trial's: of one out of reach the last results are not known."""
        finals = "SELECT value FROM metrics WHERE kind = 'FINAL'"
        with closing(self._read_only()) as db:
            kept = {json.loads(value)["token"] for (value,) in db.execute(finals)}
        given_up = {run for run in beginnings(self.witness) if run not in kept}
        self.given_up = len(given_up)
        return given_up


def run_case(cluster: Cluster, name: str, kind: str, seed: int, keep: Path) -> Outcome:
    """Run one experiment; its folder is kept if anything is wrong."""
    cluster.start(CASES[name].calls)
    plan = OnCluster(
        number=seed,
        kind=kind,
        place="ray",
        seed=seed,
        assessor=False,
        slow_tuner=False,
        favoured=name,
        trials=8,
        steps=150,
    )
    folder = Path(tempfile.mkdtemp(prefix="pf-", dir=cluster.labs))
    laboratory = Partition(plan, folder, cluster, CASES[name])
    outcome = Outcome(plan)
    try:
        laboratory.run(outcome)
    finally:
        cluster.heal()
        laboratory.end(outcome)
    outcome.kills["given up"] = laboratory.given_up
    # A trial whose node is out of reach runs again elsewhere, and both may come to their end.
    problems = [each for each in outcome.findings.problems if not each.startswith("repeated")]
    outcome.findings.problems = problems
    if problems:
        outcome.kept = keep / f"{name}-{kind}"
        shutil.move(folder, outcome.kept)
    else:
        shutil.rmtree(folder)
    return outcome


class Partitions(Campaign):
    """A campaign of partitions."""

    def again(self, plan: Plan) -> str:
        """Return the arguments that run a case again."""
        return f"--only {plan.favoured} --kinds {plan.kind}"

    def report(self) -> str:
        """Return a table: what happened, and what was repeated."""
        lines = ["| what fails | trials | results | runs given up | of them to the end | problems |"]
        lines += ["|---|---|---:|---:|---:|---:|"]
        for each in self.outcomes:
            found, plan = each.findings, each.plan
            counts = (found.acknowledged, each.kills["given up"], found.repeated, len(found.problems))
            lines.append(f"| {plan.favoured} | {plan.kind} | {' | '.join(map(str, counts))} |")
        return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Run the cases one after another, and print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--kinds", nargs="+", default=["command", "function"])
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(words)
    if why := can_partition():
        raise SystemExit(f"no network of its own can be made here: {why}")
    keep = short_folder()
    campaign = Partitions(1)
    with Cluster(keep) as cluster:
        for name, kind in product(asked.only, asked.kinds):
            campaign.run(iter([lambda name=name, kind=kind: run_case(cluster, name, kind, asked.seed, keep)]))
            print(f"{name}, {kind}: {campaign.outcomes[-1].findings.acknowledged} results", flush=True)
    print(campaign.report())
    if not campaign.findings.problems:
        shutil.rmtree(keep)
    return 1 if campaign.findings.problems else 0


if __name__ == "__main__":
    sys.exit(main())
