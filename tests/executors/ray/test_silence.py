"""Agents on Ray that are frozen, lost or late: what they and their trials still do counts for nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pitchpipe.executors.agents import spool_path
from pitchpipe.executors.ray.care import AgentCare
from pitchpipe.executors.ray.link import RayLink
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AgentSilent, AttemptEnded, AttemptStarted, Reported

from ..ray_support import eventually
from ..test_executors import (
    PATIENCE,
    Bench,
    Session,
    check_frozen,
    check_thawed,
    lives,
    run_to_silence,
)

pytestmark = pytest.mark.ray


@pytest.fixture
def bench(shared_ray: Path, tmp_path: Path) -> Bench:
    return Bench("ray", tmp_path / "exp")


@pytest.fixture
def hasty_bench(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Suspects an agent after 0.3 s and gives it up after 1.5 s."""
    monkeypatch.setattr("pitchpipe.executors.ray.link.SUSPECT_AFTER", 0.3)
    bench.agent_timeout = 1.5
    return bench


def test_agent_that_is_silent_for_too_long_is_suspected_then_killed(hasty_bench: Bench, tmp_path: Path):
    asyncio.run(check_frozen(hasty_bench, tmp_path / "never"))


def test_suspected_agent_that_is_heard_of_again_goes_on(hasty_bench: Bench, tmp_path: Path):
    asyncio.run(check_thawed(hasty_bench, tmp_path / "go"))


def test_next_manager_gives_up_an_agent_that_does_not_answer(hasty_bench: Bench, tmp_path: Path):
    async def check() -> None:
        hasty_bench.agent_timeout = 60.0
        old = Session(
            hasty_bench.executor(), hasty_bench.setup()
        )  # killed: it takes notice of nothing any more
        await old.open()
        order, pid = await run_to_silence(old, tmp_path / "never")
        hasty_bench.agent_timeout = 1.5
        async with hasty_bench.session() as new:
            await new.executor.attach([order])
            ended = await new.end_of(order)
            assert (ended.lost, ended.error) == (True, "its agent gave no sign of life for 1.5 s")
        await asyncio.to_thread(eventually, lambda: not lives(pid))

    asyncio.run(check())


async def check_late(bench: Bench, go: Path) -> int:
    async with bench.session() as session:
        order, pid = await run_to_silence(session, go)
        assert (await session.end_of(order)).lost
        told = list(session.events)
        go.touch()
        os.kill(pid, signal.SIGCONT)
        spool = bench.folder / "agents" / f"{order.agent}.jsonl"
        async with asyncio.timeout(PATIENCE):
            while '"ended"' not in spool.read_text():
                await asyncio.sleep(0.01)
        bench.agent_timeout = 60.0
        after = session.start(1, final=2)
        await session.end_of(after)
        new = [event for event in session.events if event not in told]
        assert [event for event in new if not isinstance(event, AgentSilent)] == session.of(
            after, AttemptStarted, Reported, AttemptEnded
        )
        return pid


def test_what_an_agent_says_that_was_given_up_out_of_reach_is_not_heard(
    hasty_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As behind a broken network: it cannot be killed, wakes up, finishes its trial and tells what came of it."""

    async def nothing(care: AgentCare) -> None:
        del care

    monkeypatch.setattr(RayLink, "kill", lambda link: None)
    monkeypatch.setattr(AgentCare, "sweep", nothing)
    pid = asyncio.run(check_late(hasty_bench, tmp_path / "go"))
    eventually(lambda: not lives(pid))  # the end of the experiment ends it


REPORT = r"""echo "{\"intermediate\": $n}" >> $PITCHPIPE_REPORTS"""
REPORTING = f"n=0; while true; do {REPORT}; n=$((n+1)); sleep 0.01; done"


def watchdogs(agent: psutil.Process) -> list[psutil.Process]:
    return [each for each in agent.children() if any("watchdog.py" in word for word in each.cmdline())]


@pytest.mark.parametrize("way", ["here", "there"])
def test_trial_that_outlives_its_agent_and_watchdog_is_ended_before_its_reports_are_read(
    bench: Bench, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
):
    if way == "there":  # the manager believes itself on another machine than the node
        monkeypatch.setattr(
            "pitchpipe.executors.ray.strays.socket", SimpleNamespace(gethostname=lambda: "elsewhere")
        )

    async def check() -> None:
        async with bench.session(kind="command", command=REPORTING, code_directory=str(tmp_path)) as session:
            order = session.start()
            await session.until(lambda: len(session.of(order, Reported)) > 2)
            trial = psutil.Process(session.of(order, AttemptStarted)[0].pid)
            agent = trial.parent()
            assert agent is not None
            for each in (*watchdogs(agent), agent):
                each.kill()
            await session.end_of(order)
            assert not lives(trial.pid)
            spool = spool_path(session.setup, order).read_text()
            assert {report.sequence for report in session.of(order, Reported)} == set(
                range(spool.count("\n"))
            )

    asyncio.run(check())


def test_trial_that_outlived_its_manager_and_agent_is_ended_by_the_next_manager(bench: Bench, tmp_path: Path):
    async def check() -> None:
        async with bench.session(kind="command", command="true", code_directory=str(tmp_path)) as session:
            order = AttemptOrder(
                trial_id="T0001", attempt=1, sequence_id=1, record="{}", slot=0, agent="0-0", start_time=1.0
            )
            spool = spool_path(session.setup, order)
            spool.parent.mkdir(parents=True)
            spool.write_text('{"intermediate": 1}\n')
            environment = {**os.environ, "PITCHPIPE_REPORTS": str(spool)}
            stray = subprocess.Popen(["sleep", "600"], env=environment)
            await session.executor.attach([order])
            ended = await session.end_of(order)
            assert ended.lost
            assert stray.wait(5.0) == -signal.SIGKILL
            assert session.told(order) == [("intermediate", 0, 1), "ended"]

    asyncio.run(check())
