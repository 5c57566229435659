"""Experiments on this machine: their trials see the GPUs that they were given, which no other experiment has."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

from pitchpipe.executors.local.local_resources import DEVICES_ENVIRONMENT
from pitchpipe.executors.socket_link import agent_sockets
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AttemptStarted, ResourcesChanged, StartRefused
from pitchpipe.runner.ledger import Request
from pitchpipe.store import ExperimentFolder, RuntimeDirectoryError

from ..bench import Bench, Session
from ..ray_support import lives

pytestmark = pytest.mark.usefixtures("forked_agents")
POPEN = "pitchpipe.executors.local.local_executor.subprocess.Popen"


def visible_devices(parameters: dict[str, Any]) -> dict[str, Any]:
    """Wait for a file, if given one, and report the visible GPUs, as a trial."""
    import os
    import time
    from pathlib import Path

    deadline = time.monotonic() + 30
    while (
        "wait_for" in parameters and not Path(parameters["wait_for"]).exists() and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    return {"default": 0, "devices": os.environ.get("CUDA_VISIBLE_DEVICES")}


visible_devices.__module__ = "__main__"


@asynccontextmanager
async def experiment(folder: Path, **run: Any) -> AsyncIterator[Session]:
    """Open an experiment on the machine's GPUs, which this process manages."""
    bench = Bench("local", folder)
    owner = ExperimentFolder(folder)
    owner.own()
    (folder / "trial.pkl").write_bytes(cloudpickle.dumps(visible_devices))
    async with bench.session(Request(gpus=1), **run) as session:
        yield session


def start(session: Session, gpus: tuple[int, ...] | None, **parameters: Any) -> AttemptOrder:
    order = replace(session.order(**parameters), gpus=gpus)
    session.executor.start_trial(order)
    return order


def changes(session: Session) -> list[ResourcesChanged]:
    return [event for event in session.events if isinstance(event, ResourcesChanged)]


async def test_two_managers_do_not_share_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICES_ENVIRONMENT, "0,1")
    go = tmp_path / "go"
    async with experiment(tmp_path / "one") as one, experiment(tmp_path / "other") as other:
        first = start(one, (0,), wait_for=str(go))
        second = start(other, (0,))
        await other.until(lambda: bool(other.of(second, StartRefused)))
        (refused,) = other.of(second, StartRefused)
        assert refused.devices == (0,)
        assert "another experiment holds GPU 0" in refused.reason
        go.touch()
        await one.end_of(first)
        await other.until(lambda: bool(changes(other)) and not changes(other)[-1].busy_devices)
        third = start(other, (0,))
        await other.end_of(third)
        assert other.outcome(third) == [("final", 0, {"default": 0, "devices": "0"}), "ended"]
        assert other.of(second, AttemptStarted) == []
    assert not agent_sockets(tmp_path / "one").exists()


def stop(session: Session, order: AttemptOrder) -> None:
    session.executor.stop_trial(order.trial_id, order.attempt)


def kill_the_trial(session: Session, order: AttemptOrder) -> None:
    (started,) = session.of(order, AttemptStarted)
    os.kill(started.pid, signal.SIGKILL)


def kill_its_agent(session: Session, order: AttemptOrder) -> None:
    session.link_of(order)._process.kill()


@pytest.mark.parametrize("end", [stop, kill_the_trial, kill_its_agent])
async def test_trial_that_is_killed_while_it_computes_gives_its_gpu_back(
    end: Callable[[Session, AttemptOrder], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICES_ENVIRONMENT, "0")
    run = {"kind": "command", "command": "sh -c 'trap \"\" TERM; while true; do :; done'", "grace": 0.1}
    async with experiment(tmp_path / "one", **run) as one, experiment(tmp_path / "other") as other:
        first = start(one, (0,))
        pid = (await one.started(first)).pid
        await other.until(lambda: bool(changes(other)))
        assert changes(other)[-1].busy_devices == (0,)
        end(one, first)
        await one.end_of(first)
        await other.until(lambda: not changes(other)[-1].busy_devices)
        assert not lives(pid)
        second = start(other, (0,))
        await other.end_of(second)
        assert other.outcome(second)[0] == ("final", 0, {"default": 0, "devices": "0"})


@pytest.mark.parametrize(("gpus", "seen"), [((0, 2), "0,2"), ((), ""), (None, "as before")])
async def test_trial_sees_the_gpus_it_was_given(
    gpus: tuple[int, ...] | None, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICES_ENVIRONMENT, "0,1,2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "as before")
    async with experiment(tmp_path / "one") as session:
        order = start(session, gpus)
        await session.end_of(order)
        assert session.outcome(order)[0] == ("final", 0, {"default": 0, "devices": seen})


@pytest.mark.parametrize(("run", "most"), [({}, 8), ({"kind": "command", "command": "true"}, 1)])
async def test_only_function_trials_queue_in_agents(run: dict[str, Any], most: int, tmp_path: Path) -> None:
    bench = Bench("local", tmp_path)
    executor = bench.executor()
    totals = await executor.open(bench.setup(**run), lambda events: None)
    assert totals.orders_per_agent == most
    await executor.close()


# --------------------------------------------------------------------------- no free descriptor in the manager

GPUS = "pitchpipe.executors.local.gpu_claims"


def without_descriptors(*_: Any, **__: Any) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.fixture
def shortage(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Return what takes descriptors away; `undo` gives them back."""
    monkeypatch.setenv(DEVICES_ENVIRONMENT, "0,1")
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def refuse_processes(*_: Any, **__: Any) -> None:
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


# Without these sockets nobody finds out whether an agent listens on one.
NO_SOCKETS = f"{GPUS}.socket", SimpleNamespace(AF_UNIX=socket.AF_UNIX, socket=without_descriptors)


@pytest.mark.parametrize(
    ("lacking", "number"), [((POPEN, refuse_processes), errno.EAGAIN), (NO_SOCKETS, errno.EMFILE)]
)
async def test_agent_that_cannot_be_started_is_lost_and_the_next_attempt_may_find_the_machine_well(
    lacking: tuple[str, Any],
    number: int,
    tmp_path: Path,
    shortage: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with experiment(tmp_path / "one") as session:
        shortage.setattr(*lacking)
        order = session.start()
        ended = await session.end_of(order)
        assert ended.lost
        assert f"its agent cannot be started: [Errno {number}]" in (ended.error or "")
        assert f"agent 0-0 cannot be started: [Errno {number}]" in caplog.text
        shortage.undo()
        assert (await session.outcome_of())[-1] == "ended"


async def test_live_agent_that_cannot_be_looked_for_is_taken_up_by_the_next_manager(
    tmp_path: Path, shortage: pytest.MonkeyPatch
) -> None:
    bench = Bench("local", tmp_path / "one")
    old = await bench.killed()
    order = old.start(wait_for=str(tmp_path / "go"), final=7)
    await old.started(order)
    link = old.link_of(order)
    link.drop()  # as if the manager had been killed
    async with bench.session() as new:
        shortage.setattr(*NO_SOCKETS)
        await new.executor.attach([order])
        shortage.undo()
        (tmp_path / "go").touch()
        assert not (await new.end_of(order)).lost
        assert new.outcome(order)[-2:] == [("final", 0, 7), "ended"]
    link._process.wait()


async def test_agents_are_ended_though_others_cannot_be_looked_for(
    tmp_path: Path, shortage: pytest.MonkeyPatch
) -> None:
    async with experiment(tmp_path / "one") as session:
        order = start(session, (0,), wait_for=str(tmp_path / "never"))
        pid = (await session.started(order)).pid
        look, looks = Path.glob, [without_descriptors]

        def glob(path: Path, pattern: str) -> Any:
            return (looks.pop() if looks else look)(path, pattern)

        shortage.setattr(Path, "glob", glob)
    assert not looks
    assert not lives(pid)
    assert not agent_sockets(tmp_path / "one").exists()


async def test_trial_waits_until_its_gpus_can_be_claimed(
    tmp_path: Path, shortage: pytest.MonkeyPatch
) -> None:
    shortage.setenv(DEVICES_ENVIRONMENT, "0,1")
    async with experiment(tmp_path / "one") as session:
        shortage.setattr(f"{GPUS}.GpuClaims.take", without_descriptors)
        order = start(session, (0,))
        await session.until(lambda: bool(session.of(order, StartRefused)))
        (refused,) = session.of(order, StartRefused)
        assert (refused.reason, refused.devices) == (
            "its GPUs cannot be claimed: [Errno 24] Too many open files",
            (),
        )
        shortage.undo()
        session.executor.start_trial(order)
        assert not (await session.end_of(order)).lost


async def test_gpus_that_cannot_be_given_back_are_given_back_later(
    tmp_path: Path, shortage: pytest.MonkeyPatch
) -> None:
    async with experiment(tmp_path / "one") as one, experiment(tmp_path / "other") as other:
        shortage.setattr(f"{GPUS}.GpuClaims.give_back", without_descriptors)
        order = start(one, (0,))
        await one.end_of(order)
        await other.until(lambda: bool(changes(other)))
        assert changes(other)[-1].busy_devices == (0,)
        shortage.undo()
        await other.until(lambda: not changes(other)[-1].busy_devices)


async def test_executor_that_has_no_place_for_sockets_closes_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench("local", tmp_path)
    executor = bench.executor()
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", str(tmp_path / ("x" * 100)))
    with pytest.raises(RuntimeDirectoryError):
        await executor.open(bench.setup(Request()), lambda event: None)
    await executor.close()
