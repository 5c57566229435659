"""GPUs on one machine: two experiments keep off each other's devices."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from pitchpipe.executors.base import RunSetup
from pitchpipe.executors.local.executor import LocalTrialExecutor, agent_sockets
from pitchpipe.executors.local.gpu_claims import GpuClaims
from pitchpipe.executors.local.resources import DEVICES_ENVIRONMENT, local_totals
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AttemptEnded, AttemptStarted, Event, ResourcesChanged, StartRefused
from pitchpipe.runner.ledger import Request
from pitchpipe.trial_agent import RunSpec


def claims(tmp_path: Path, name: str, alive: set[str]) -> GpuClaims:
    folder = tmp_path / name
    return GpuClaims(tmp_path, folder, tmp_path / f"{name}-sockets", lambda path: path.name in alive)


def test_claimed_device_is_refused_to_others_until_it_is_given_back(tmp_path: Path) -> None:
    alive = {"one", "other"}
    one, other = claims(tmp_path, "one", alive), claims(tmp_path, "other", alive)
    assert one.take("A", (0, 1)) == ()
    assert one.take("B", (1,)) == ()  # within an experiment its ledger counts
    assert other.take("C", (1, 2)) == (1,)
    assert other.busy() == {0, 1}
    one.give_back("A")
    assert other.busy() == {1}
    one.give_back("B")
    assert other.take("C", (1, 2)) == ()


def test_claims_of_a_dead_experiment_are_void(tmp_path: Path) -> None:
    alive = {"one", "other"}
    one, other = claims(tmp_path, "one", alive), claims(tmp_path, "other", alive)
    one.take("A", (0,))
    alive.remove("one")
    assert other.take("B", (0,)) == ()


def test_damaged_file_is_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = claims(tmp_path, "one", {"one"})
    one.path.write_text("[[0, 1")
    assert one.take("A", (0,)) == ()
    assert "damaged" in caplog.text
    assert json.loads(one.path.read_text())[0][0] == 0


def test_named_devices_and_gpu_indices_make_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICES_ENVIRONMENT, "0,1,3")
    assert local_totals(Request(gpus=1)).devices == (0, 1, 3)
    assert local_totals(Request(gpus=1), gpu_indices=(1, 2)).devices == (1,)
    assert local_totals(Request()).devices == ()


def visible_devices(parameters: dict[str, Any]) -> dict[str, Any]:
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


class Machine:
    """One experiment on the machine's GPUs."""

    def __init__(self, folder: Path) -> None:
        for name in ("logs", "agents"):
            (folder / name).mkdir(parents=True)
        (folder / "trial.pkl").write_bytes(cloudpickle.dumps(visible_devices))
        (folder / "manager.json").write_text(_myself())
        path = str(folder / "trial.pkl")
        run = RunSpec(
            kind="function", experiment="exp", folder=str(folder), path=path, grace=1.0, orphan_timeout=30.0
        )
        self.setup = RunSetup("exp", folder, "secret", run, 1, time.time, Request(gpus=1))
        self.executor = LocalTrialExecutor()
        self.events: list[Event] = []
        self.arrived = asyncio.Event()

    async def open(self) -> None:
        await self.executor.open(self.setup, self._deliver)

    def _deliver(self, events: Any) -> None:
        self.events += events
        self.arrived.set()
        asyncio.get_running_loop().call_soon(self._acknowledge)

    def _acknowledge(self) -> None:
        self.executor.confirm(self.executor.take_cursors())
        self.executor.acknowledge()

    def start(self, number: int, gpus: tuple[int, ...] | None, **parameters: Any) -> AttemptOrder:
        record = json.dumps({"parameter_id": number, "parameters": parameters})
        order = AttemptOrder(
            trial_id=f"T{number}",
            attempt=1,
            sequence_id=number,
            record=record,
            slot=0,
            agent="0-0",
            gpus=gpus,
        )
        self.executor.start_trial(order)
        return order

    async def until(self, kind: type) -> Any:
        async with asyncio.timeout(30):
            while not (found := [event for event in self.events if isinstance(event, kind)]):
                self.arrived.clear()
                await self.arrived.wait()
        return found[-1]


def _myself() -> str:
    import socket

    import psutil

    me = psutil.Process()
    return json.dumps({"pid": me.pid, "host": socket.gethostname(), "create_time": me.create_time()})


async def check_two_managers(tmp_path: Path) -> None:
    one, other = Machine(tmp_path / "one"), Machine(tmp_path / "other")
    go = tmp_path / "go"
    await one.open()
    await other.open()
    try:
        one.start(1, (0,), wait_for=str(go))
        other.start(2, (0,))
        refused = await other.until(StartRefused)
        assert (refused.devices, refused.trial_id) == ((0,), "T2")
        assert "another experiment holds GPU 0" in refused.reason
        go.touch()
        await one.until(AttemptEnded)
        while (await other.until(ResourcesChanged)).busy_devices:
            other.events = [event for event in other.events if not isinstance(event, ResourcesChanged)]
        other.start(3, (0,))
        await other.until(AttemptEnded)
        finals = [json.loads(event.value) for event in other.events if getattr(event, "kind", "") == "final"]
        assert finals == [{"default": 0, "devices": "0"}]
        started = {event.trial_id for event in other.events if isinstance(event, AttemptStarted)}
        assert started == {"T3"}
    finally:
        await one.executor.close()
        await other.executor.close()


def test_two_managers_do_not_share_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICES_ENVIRONMENT, "0,1")
    asyncio.run(check_two_managers(tmp_path))
    assert not agent_sockets(tmp_path / "one").exists()


@pytest.mark.parametrize(("gpus", "seen"), [((0, 2), "0,2"), ((), ""), (None, "as before")])
def test_trial_sees_the_gpus_it_was_given(
    gpus: tuple[int, ...] | None, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEVICES_ENVIRONMENT, "0,1,2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "as before")

    async def check() -> None:
        machine = Machine(tmp_path / "one")
        await machine.open()
        try:
            machine.start(1, gpus)
            await machine.until(AttemptEnded)
        finally:
            await machine.executor.close()
        finals = [
            json.loads(event.value) for event in machine.events if getattr(event, "kind", "") == "final"
        ]
        assert finals[0]["devices"] == seen

    asyncio.run(check())
