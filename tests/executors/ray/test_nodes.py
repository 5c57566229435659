"""A cluster of several nodes: where trials run, what becomes of those of a lost node, how their code gets there."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest

from pitchpipe.executors.ray.ray_executor import RayTrialExecutor
from pitchpipe.executors.socket_link import agent_sockets
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import Reported, TotalsChanged
from pitchpipe.runner.ledger import Ledger, Request

from ..bench import Bench, Session
from ..cluster_support import Cluster
from ..ray_support import connections, needs_runtime_env

pytestmark = pytest.mark.ray

# Waits for a file, then ends.
WAITING = """
while [ ! -e {go} ]; do sleep 0.05; done
echo '{{"final": 1}}' >> $PITCHPIPE_REPORTS
"""


@pytest.fixture(scope="module")
def left(real_cluster: Cluster) -> Iterator[None]:
    """Make the node that these tests share."""
    real_cluster.add("left", CPU=1, GPU=1, environment={"NODE": "left"})
    yield
    real_cluster.clear()


@pytest.fixture
def cluster(cluster: Cluster, left: None) -> Cluster:
    """Return the cluster with its two nodes."""
    return cluster


def where(session: Session, order: AttemptOrder) -> str:
    """Return the node of a trial that has reported it."""
    (report,) = session.of(order, Reported)
    return report.value.strip('"')


NODE = """echo "{\\"intermediate\\": \\"${NODE:-head}\\"}" >> $PITCHPIPE_REPORTS"""


async def test_trials_are_spread_by_resources_and_a_node_added_later_is_used(
    cluster: Cluster, own_bench: Bench, tmp_path: Path
) -> None:
    command = NODE + WAITING.format(go=tmp_path / "go")
    executor = RayTrialExecutor(cluster.address)
    async with own_bench.session(Request(cpus=1), executor, kind="command", command=command) as session:
        ledger = Ledger(session.totals)
        assert ledger.totals.amounts["CPU"] == 3.0
        orders = [session.start(slot) for slot in range(3)]
        await session.until(lambda: all(session.of(order, Reported) for order in orders))
        assert sorted(where(session, order) for order in orders) == ["head", "head", "left"]
        for order in orders:  # the manager is on the head: only agents there have a socket for it
            agent = psutil.Process((await session.started(order)).pid).parent()
            assert agent is not None
            has_socket = connections(agent.pid, agent_sockets(own_bench.folder)) == 2
            assert has_socket == (where(session, order) == "head")
        await asyncio.to_thread(cluster.add, "right", CPU=1, environment={"NODE": "right"})
        await session.until(lambda: any(isinstance(event, TotalsChanged) for event in session.events))
        (change,) = [event for event in session.events if isinstance(event, TotalsChanged)]
        assert change.totals.amounts["CPU"] == 4.0
        late = session.start(3)
        await session.until(lambda: bool(session.of(late, Reported)))
        assert where(session, late) == "right"
        (tmp_path / "go").touch()
        for order in (*orders, late):
            await session.end_of(order)
    cluster.kill("right")


async def test_trials_that_share_a_gpu_see_the_same_one(
    cluster: Cluster, own_bench: Bench, tmp_path: Path
) -> None:
    devices = """echo "{\\"intermediate\\": \\"$CUDA_VISIBLE_DEVICES\\"}" >> $PITCHPIPE_REPORTS"""
    command = devices + WAITING.format(go=tmp_path / "go")
    request = Request(gpus=0.5, custom={"left": 1})
    executor = RayTrialExecutor(cluster.address)
    async with own_bench.session(request, executor, kind="command", command=command) as session:
        both = [session.start(slot) for slot in range(2)]  # at the same time: neither ends before "go"
        await session.until(lambda: all(session.of(order, Reported) for order in both))
        assert [where(session, order) for order in both] == ["0", "0"]
        (tmp_path / "go").touch()
        for order in both:
            await session.end_of(order)


# The nodes of one machine share the folder where Ray unpacks what it ships: one that unpacks later takes it from under
# a worker of another. So only the node that needs it does.
LAZILY = {"config": {"eager_install": False}}


@needs_runtime_env
async def test_code_of_commands_is_shipped_in_the_working_directory(
    cluster: Cluster, own_bench: Bench, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("import pitchpipe, model\npitchpipe.report_final_result(model.SIZE)")
    (code / "model.py").write_text("SIZE = 17")
    run = {
        "kind": "command",
        "command": f"{shlex.quote(sys.executable)} train.py",
        "code_directory": str(code),
    }
    executor = RayTrialExecutor(cluster.address, runtime_env={"working_dir": str(code), **LAZILY})
    async with own_bench.session(Request(custom={"left": 1}), executor, **run) as session:
        shutil.rmtree(code)  # as if the node had never had it
        assert await session.outcome_of() == [("final", 0, 17), "ended"]


def use_model(parameters: dict[str, Any]) -> int:
    """Use one of the user's modules and variables, as a trial."""
    import os

    import shipped_model  # type: ignore[import-not-found]

    return shipped_model.SIZE + int(os.environ["MORE"])


use_model.__module__ = "__main__"  # pickled by value


@needs_runtime_env
async def test_modules_and_variables_of_functions_are_shipped(
    cluster: Cluster, own_bench: Bench, tmp_path: Path
) -> None:
    module = tmp_path / "modules" / "shipped_model"
    module.mkdir(parents=True)
    (module / "__init__.py").write_text("SIZE = 23")
    (own_bench.folder / "trial.pkl").write_bytes(cloudpickle.dumps(use_model))
    runtime_env = {"py_modules": [str(module)], "env_vars": {"MORE": "100"}, **LAZILY}
    executor = RayTrialExecutor(cluster.address, runtime_env=runtime_env)
    async with own_bench.session(Request(custom={"left": 1}), executor) as session:
        shutil.rmtree(module.parent)
        assert await session.outcome_of() == [("final", 0, 123), "ended"]
