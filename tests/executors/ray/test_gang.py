"""Trials on several nodes: one start, one end, whatever happens to one of their agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from pitchpipe.executors.agents import Listener
from pitchpipe.executors.ray.file_transfer import NODE_FOLDER, AgentLocation
from pitchpipe.executors.ray.gang import GangLink, port_of
from pitchpipe.executors.ray.ray_executor import RayTrialExecutor
from pitchpipe.runner.events import Reported
from pitchpipe.runner.ledger import Request
from pitchpipe.trial_agent import Ended, Event, Kill, Report, Start, Started
from pitchpipe.trial_agent import Request as AgentRequest
from pitchpipe.trial_agent.watchdog import environment_of

from ..bench import Bench, Heard, Session
from ..cluster_support import Cluster
from ..ray_support import eventually

START = Start(trial="T1", attempt=1, sequence_id=1, parameters="{}")


class FakeLink:
    """A link to an agent that does nothing but remember what it was sent."""

    is_connected = True
    is_anothers = False

    def __init__(self, node: int, listener: Listener, address: str | None = "10.0.0.1") -> None:
        self.node = node
        self.name = f"0-0.{node}" if node else "0-0"
        self.listener = listener
        self.address = address
        self.placed = asyncio.Event()
        self.sent: list[AgentRequest] = []
        self.polled: list[int] = []
        self._kept: list[AgentRequest] = []
        self._kept_polls: list[int] = []
        self.lost = False

    async def located(self) -> AgentLocation | None:
        await self.placed.wait()
        return AgentLocation(node="n", host="ada", pid=1, created=0.0, address=self.address or "")

    def send(self, request: AgentRequest) -> None:
        self._kept.append(request)

    def poll(self, after: int) -> None:
        self._kept_polls.append(after)

    def flush(self) -> None:
        self.sent += self._kept
        self.polled += self._kept_polls
        self._kept, self._kept_polls = [], []

    def kill(self) -> None:
        self.lose("its agent was killed")

    def be_replaced(self) -> None:
        self.is_anothers = True
        self.lose("another manager has taken over its agent")

    def lose(self, reason: str) -> None:
        if not self.lost:
            self.lost = True
            asyncio.get_running_loop().call_soon(self.listener.on_lost, self.name, reason)

    def tell(self, *events: Event, cursor: int = 1) -> None:
        self.listener.on_batch(self.name, events, cursor)


class Gang:
    """A gang of fake links, whose first agent is placed at once unless it is said otherwise."""

    def __init__(self, nodes: int = 3, *, placed: bool = True, new: bool = True) -> None:
        self.heard = Heard()
        self.releases = 0
        self.links: list[FakeLink] = []

        def connect(node: int, listener: Listener) -> Any:
            self.links.append(FakeLink(node, listener))
            return self.links[-1]

        self.link = GangLink(
            agent="0-0",
            nodes=nodes,
            connect=connect,
            listener=self.heard,
            release=self.release,
            new=new,
        )
        if placed:
            self.links[0].placed.set()

    async def release(self) -> None:
        self.releases += 1

    async def started(self) -> Gang:
        self.link.send(START)
        await settle()
        return self

    def end(self) -> Ended:
        """Return the only event that was passed on."""
        (ended,) = self.heard.events
        assert isinstance(ended, Ended)
        return ended


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def end(**fields: Any) -> Ended:
    return Ended(**{"trial": "T1", "attempt": 1, "exit_code": 0, "time": 5.0, **fields})


async def test_all_agents_are_told_where_they_meet() -> None:
    gang = await Gang().started()
    starts = [link.sent[-1] for link in gang.links]
    assert [start.node for start in starts if isinstance(start, Start)] == [0, 1, 2]
    assert {start.master for start in starts if isinstance(start, Start)} == {f"10.0.0.1:{port_of(START)}"}
    assert 20_000 <= port_of(START) < 32_000


async def test_end_is_passed_on_when_all_have_ended() -> None:
    gang = await Gang().started()
    first, *others = gang.links
    first.tell(Started(trial="T1", attempt=1, time=1.0))
    first.tell(report := Report("T1", 1, "final", 0, "7", 2.0), end())
    others[0].tell(end(), cursor=4)
    assert [event.e for event in gang.heard.events] == ["started"]
    others[1].tell(end())
    assert gang.heard.events[1:] == [report, end()]
    # The ends of the others are acknowledged by the next start only.
    assert others[0].polled == [0]
    gang.link.send(Start(trial="T2", attempt=1, sequence_id=2, parameters="{}"))
    await settle()
    assert others[0].polled == [0, 4]


async def test_earliest_failure_ends_the_others_and_is_the_error() -> None:
    gang = await Gang().started()
    gang.links[2].tell(end(exit_code=None, signal=11, error="a fault", time=2.0))
    assert [isinstance(link.sent[-1], Kill) for link in gang.links] == [True, True, False]
    gang.links[1].tell(end(exit_code=1, error="the connection was closed", time=3.0))
    gang.links[0].tell(end(exit_code=None, signal=15, killed=True))
    ended = gang.end()
    assert (ended.signal, ended.exit_code, ended.killed) == (11, None, False)
    assert ended.error == "a fault\n(on node 2 of 3)"


@pytest.mark.parametrize("by_itself", [0, 1])
async def test_stopped_attempt_ends_as_stopped_though_a_node_ends_by_itself(by_itself: int) -> None:
    gang = await Gang(2).started()
    gang.link.send(Kill("T1", 1))
    gang.links[by_itself].tell(end(exit_code=1, error="the connection was closed"))
    gang.links[1 - by_itself].tell(end(exit_code=None, signal=15, killed=True))
    assert gang.end().killed


async def test_attempt_that_waits_for_nodes_is_stopped_at_once() -> None:
    gang = await Gang(2, placed=False).started()
    gang.link.send(Kill("T1", 1))
    await settle()
    assert gang.end().error == "stopped before it had started"
    gang.links[0].placed.set()
    await settle()
    assert [link.sent for link in gang.links] == [[], []]


async def test_stop_after_a_restart_of_the_manager_follows_the_start() -> None:
    gang = await Gang(2, placed=False, new=False).started()
    gang.link.send(Kill("T1", 1))
    gang.links[0].placed.set()
    await settle()
    assert [[type(request) for request in link.sent] for link in gang.links] == [[Start, Kill]] * 2


async def test_loss_of_one_is_the_loss_of_all_and_releases_what_they_held() -> None:
    gang = await Gang().started()
    gang.links[1].lose("its agent's node is gone")
    await settle()
    assert all(link.lost for link in gang.links)
    assert gang.heard.losses == ["its agent's node is gone (node 1 of the trial)"]
    assert gang.releases == 1


async def test_agents_of_another_manager_are_left_alone() -> None:
    gang = await Gang(2).started()
    gang.links[0].be_replaced()
    await settle()
    assert all(link.is_anothers for link in gang.links)
    assert gang.heard.losses == ["another manager has taken over its agent"]
    assert gang.releases == 0


async def test_gang_is_silent_while_one_is() -> None:
    gang = Gang(2)
    for name, is_silent in (("0-0", True), ("0-0.1", True), ("0-0", False), ("0-0.1", False)):
        gang.link.on_silent(name, is_silent)
    assert gang.heard.silences == [True, False]


# --------------------------------------------------------------------------- on a cluster

MEETING = """
import json, os, socket, sys
import pitchpipe
rank = int(os.environ["RANK"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
mode = pitchpipe.get_next_parameter()["mode"]
if mode == "fail" and rank == 1:
    raise ValueError("no luck")
if rank == 0:
    with socket.create_server(place) as server:
        there = server.accept()[0]
        pitchpipe.report_final_result(json.loads(there.makefile().readline()))
        if mode == "wait":
            there.recv(1)
else:
    while True:
        try:
            there = socket.create_connection(place)
            break
        except ConnectionRefusedError:
            pass
    there.sendall(json.dumps(int(os.environ["NODE_RANK"]) + 40).encode() + b"\\n")
    if mode == "wait":
        there.recv(1)
print("rank", rank)
"""


def is_far(node: dict[str, Any]) -> bool:
    return node["Alive"] and "far" in node["Resources"]


@pytest.fixture(scope="module")
def far(real_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make the second node, whose power the last test cuts; yield its folder."""
    folder = tmp_path_factory.mktemp("far")
    real_cluster.add("far", CPU=2.0, environment={NODE_FOLDER: str(folder)})
    yield folder
    real_cluster.clear()


@asynccontextmanager
async def gang_session(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Session]:
    bench = Bench("ray", tmp_path / "exp")
    (tmp_path / "trial.py").write_text(MEETING)
    run = {"kind": "command", "command": "python trial.py", "code_directory": str(tmp_path)}
    executor = RayTrialExecutor(cluster.address)
    async with bench.session(Request(cpus=2, nodes=2), executor, **run, processes=2, nodes=2) as session:
        # The node of an earlier test counts as alive for half a second after its power was cut.
        await asyncio.to_thread(eventually, lambda: sum(map(is_far, ray.nodes())) == 1)
        yield session


def groups() -> list[str]:
    from ray.util import placement_group_table

    table: dict[str, Any] = placement_group_table()
    return [each["state"] for each in table.values()]


@pytest.mark.ray
async def test_trial_on_two_nodes_is_one_trial(cluster: Cluster, far: Path, tmp_path: Path) -> None:
    async with gang_session(cluster, tmp_path) as session:
        order = session.start(mode="meet")
        ended = await session.end_of(order)
        assert (ended.error, session.outcome(order)) == (None, [("final", 0, 41), "ended"])
        folder = tmp_path / "exp" / "trials" / "1"
        assert (folder / "stdout").read_text() == "rank 0\n"
        assert (folder / "stdout-rank1").read_text() == "rank 1\n"
        assert await asyncio.to_thread(groups) == ["CREATED"]
        failing = session.start(mode="fail")
        ended = await session.end_of(failing)
        assert ended.exit_code == 1
        assert "ValueError: no luck\n\nrank 1 of 2 failed with exit code 1\n(on node 1 of 2)" in (
            ended.error or ""
        )
        assert await asyncio.to_thread(groups) == ["CREATED"]
        last = session.start(mode="wait")
        await session.until(lambda: bool(session.of(last, Reported)))
        session.executor.stop_trial(last.trial_id, last.attempt)
        assert (await session.end_of(last)).killed
        assert session.executor.warnings() == []
    assert not list(far.rglob("stdout*"))


@pytest.mark.ray
async def test_next_manager_takes_over_a_trial_on_two_nodes_and_its_loss_ends_all(
    cluster: Cluster, far: Path, tmp_path: Path
) -> None:
    async with gang_session(cluster, tmp_path) as session:
        order = session.start(mode="wait")
        await session.until(lambda: bool(session.of(order, Reported)))
        successor = Session(RayTrialExecutor(cluster.address), session.setup)
        await successor.open()
        await successor.executor.attach([order])
        assert await successor.executor.read_file(order, "stdout-rank1", 0, 9) == b""
        processes = [each for each in psutil.process_iter() if _is_of(each, tmp_path, far)]
        assert len(processes) == 4  # a launcher and a process on each node
        cluster.kill("far")
        ended = await successor.end_of(order)
        assert ended.lost
        eventually(lambda: not [each for each in processes if each.is_running()], 30)


def _is_of(process: psutil.Process, *folders: Path) -> bool:
    """Return whether a process is a trial's with its output in these folders; others have the same id."""
    environment = environment_of(process.pid)
    return any(f"\0PITCHPIPE_OUTPUT_DIR={folder}".encode() in environment for folder in folders)
