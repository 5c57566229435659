"""What only Ray can do to an executor: supervisors and agents that are killed, resources, environments."""

import asyncio
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import psutil
import pytest

from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.private_ray.supervisor_files import SupervisorFiles, session_processes
from pitchpipe.executors.ray.nodes import is_internal
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AttemptEnded, AttemptStarted, Reported
from pitchpipe.runner.ledger import Request

from ..bench import Bench
from ..ray_support import eventually, lives

pytestmark = pytest.mark.ray


async def test_killed_supervisor_takes_its_ray_along_and_the_executor_continues_with_another(
    own_bench: Bench, tmp_path: Path
) -> None:
    async with own_bench.session() as session:
        lost = session.start(reports=[1], wait_for=str(tmp_path / "never"))
        await session.until(lambda: bool(session.of(lost, Reported)))
        state = SupervisorFiles.current().read_state()
        assert state is not None
        processes = session_processes(state.temp_dir)
        assert len(processes) > 4
        os.kill(state.pid, signal.SIGKILL)
        ended = await session.end_of(lost)
        assert (ended.lost, ended.error) == (True, "the private Ray has ended")
        again = session.start(final=2)  # waits for the next Ray
        await asyncio.to_thread(eventually, lambda: not any(lives(process.pid) for process in processes))
        await session.end_of(again)
        assert session.outcome(again) == [("final", 0, 2), "ended"]
        assert not Path(state.temp_dir).exists()


async def test_killed_agent_of_a_command_takes_its_trial_along(bench: Bench, tmp_path: Path) -> None:
    report = r"""printf '{"intermediate": 1}\n{"intermediate": 2}\n' >> $PITCHPIPE_REPORTS"""
    script = f"{report}; sleep 600"
    async with bench.session(kind="command", command=script, code_directory=str(tmp_path)) as session:
        order = session.start()
        await session.until(lambda: len(session.of(order, Reported)) == 2)
        trial = psutil.Process((await session.started(order)).pid)
        tree = [trial, *trial.children(recursive=True)]
        agent = trial.parent()
        assert agent is not None
        agent.kill()
        ended = await session.end_of(order)
        assert ended.lost
        assert ended.error == "its agent's process has ended or was killed"
        # The spool is read again: what had arrived comes twice, under the same number.
        outcome = list(dict.fromkeys(session.outcome(order)))
        assert outcome == [("intermediate", 0, 1), ("intermediate", 1, 2), "ended"]
        await asyncio.to_thread(eventually, lambda: not any(lives(process.pid) for process in tree))
        assert len(session.of(order, AttemptEnded)) == 1
        await session.started(session.start())  # a new agent of the same name


async def test_agents_hold_their_custom_resources(bench: Bench, tmp_path: Path) -> None:
    async with bench.session(Request(custom={"widget": 1.0})) as session:
        assert (session.totals.anonymous_gpus, session.totals.devices) == (2.0, ())
        assert session.totals.amounts["CPU"] == session.totals.amounts["widget"] == 2.0
        assert not [name for name in session.totals.amounts if is_internal(name)]
        orders = [session.start(slot, wait_for=str(tmp_path / "never")) for slot in range(3)]
        running: list[AttemptOrder] = []

        def two_run() -> bool:
            running[:] = [order for order in orders if session.of(order, AttemptStarted)]
            return len(running) == 2

        await session.until(two_run)
        assert await asyncio.to_thread(free_widgets) == 0.0
        (waiting,) = [order for order in orders if order not in running]
        os.kill(session.of(running[0], AttemptStarted)[0].pid, signal.SIGKILL)
        await session.started(waiting)
        assert (await session.end_of(running[0])).lost


async def test_idle_agent_makes_room_for_one_that_waits_and_is_made_again(bench: Bench) -> None:
    """The ledger knows the cluster's sums only: that a trial fits does not mean that its slot's agent does."""
    async with bench.session(Request(custom={"widget": 1.0})) as session:
        for slots in ((0, 1), (2,), (0, 1)):
            orders = [session.start(slot, final=slot) for slot in slots]
            for order in orders:
                await session.end_of(order)
                assert session.outcome(order) == [("final", 0, order.slot), "ended"]


async def test_no_more_agents_are_made_ahead_than_fit(bench: Bench, tmp_path: Path) -> None:
    async with bench.session(Request(custom={"widget": 1.0})) as session:
        agents = ["0-0", "1-0", "2-0", "3-0"]
        session.executor.prepare(agents)
        # Both at once: an idle agent would make room for one that is slow to start.
        orders = [session.start(slot, wait_for=str(tmp_path / "go")) for slot in (0, 1)]
        for order in orders:
            await session.started(order)
        exists = partial(agent_exists, session.setup.experiment_id)
        assert [await asyncio.to_thread(exists, agent) for agent in agents] == [True, True, False, False]
        (tmp_path / "go").touch()
        for order in orders:
            await session.end_of(order)


def agent_exists(experiment: str, agent: str) -> bool:
    """Return whether an agent was made, also if it still waits for resources."""
    import ray

    try:
        ray.get_actor(agent, namespace=experiment)
    except ValueError:
        return False
    return True


def free_widgets() -> float:
    import ray

    return ray.available_resources().get("widget", 0.0)


async def test_custom_resource_that_is_not_there_is_refused_in_words(bench: Bench) -> None:
    with pytest.raises(ExecutorError, match="a trial needs 5 widget, and there are only 2"):
        async with bench.session(Request(custom={"widget": 5.0})):
            pass


def look_around(parameters: dict[str, Any]) -> dict[str, Any]:
    """Report the environment, as a trial."""
    import os
    import subprocess

    child = subprocess.run(["env"], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "GREETING")
    found: dict[str, Any] = {name: os.environ.get(name) for name in names}
    found["ray"] = [line for line in child.splitlines() if line.startswith(("RAY_", "PITCHPIPE_RAY"))]
    return {"default": 0, "found": found}


look_around.__module__ = "__main__"  # pickled by value: agents cannot import this file


async def environments(
    bench: Bench, request: Request, gpus: tuple[int, ...] | None, slots: int = 1
) -> list[Any]:
    (bench.folder / "trial.pkl").write_bytes(cloudpickle.dumps(look_around))
    async with bench.session(request) as session:
        orders = [replace(session.order(slot), gpus=gpus) for slot in range(slots)]
        for order in orders:
            session.executor.start_trial(order)
        for order in orders:
            await session.end_of(order)
        return [session.outcome(order)[0][2]["found"] for order in orders]


async def test_trial_has_the_managers_environment_and_nothing_of_rays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREETING", "hello")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    expected = {"CUDA_VISIBLE_DEVICES": "7", "OMP_NUM_THREADS": None, "GREETING": "hello", "ray": []}
    assert await environments(bench, Request(), None) == [expected]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    (hidden,) = await environments(bench, Request(gpus=0), ())
    assert (hidden["CUDA_VISIBLE_DEVICES"], hidden["OMP_NUM_THREADS"]) == ("", "5")


async def test_ray_gives_each_agent_its_own_gpu(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    seen = await environments(bench, Request(gpus=1), None, slots=2)
    assert {each["CUDA_VISIBLE_DEVICES"] for each in seen} == {"0", "1"}
