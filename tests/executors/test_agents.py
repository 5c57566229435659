"""What all executors with agents share: their events name what caused them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors import RunSetup
from pitchpipe.executors.agents import AgentLink, AgentTrialExecutor
from pitchpipe.executors.base import Deliver
from pitchpipe.runner import AttemptEnded, AttemptOrder, BadReport, CheckpointSaved, Event, Reported, Totals
from pitchpipe.trial_agent import Keeping, Report, Request, RunSpec, Started

ORDER = AttemptOrder(
    trial_id="AbCdE", attempt=1, sequence_id=0, record="{}", slot=0, agent="0-0", start_time=100.0, mark="5f"
)
STARTED = Started(trial="AbCdE", attempt=1, pid=7, time=100.0, mark="5f")
REPORT = Report("AbCdE", 1, "final", 0, "1", 100.0, "5f")


class Link(AgentLink):
    """A connection that takes everything and returns nothing."""

    def send(self, request: Request) -> None:
        return

    def poll(self, after: int) -> None:
        return

    async def ask(self, request: Request) -> dict[str, Any]:
        raise ConnectionError

    def kill(self) -> None:
        return

    async def close(self, grace: float) -> None:
        return


class Executor(AgentTrialExecutor):
    """An executor that always has an agent; `found` are the events that it delivered."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.found: list[Event] = []
        run = RunSpec(
            kind="command",
            experiment="exp",
            folder=str(folder),
            command="true",
            keeping=Keeping(metric="f1"),
        )
        self._setup = RunSetup(
            experiment_id="exp", folder=folder, token="token", run=run, concurrency=1, clock=lambda: 100.0
        )
        self._deliver = self.found.extend

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        raise NotImplementedError

    def _connect(self, agent: str, *, spawn: bool) -> AgentLink:
        return Link()

    @property
    def causes(self) -> Sequence[str]:
        return [event.cause for event in self.found]


@pytest.fixture
def executor(tmp_path: Path) -> Executor:
    executor = Executor(tmp_path)
    executor.start_trial(ORDER)
    return executor


def test_event_names_its_agent_and_its_number_there(executor: Executor):
    executor.on_batch("0-0", [STARTED, REPORT], 8)
    assert executor.causes == ["agent 0-0 #7", "agent 0-0 #8"]


def test_event_that_is_delivered_again_has_the_same_cause_in_any_batch(executor: Executor):
    executor.on_batch("0-0", [STARTED], 7)
    executor.on_batch("0-0", [STARTED, REPORT], 8)
    assert executor.causes == ["agent 0-0 #7", "agent 0-0 #7", "agent 0-0 #8"]


def test_event_from_the_spool_of_a_lost_agent_names_the_spool_and_the_end_names_the_loss(
    executor: Executor, tmp_path: Path
):
    folder = tmp_path / "trials" / "0"
    folder.mkdir(parents=True)
    (folder / "reports-1-5f.jsonl").write_text('{"final": 1, "time": 100}\n')
    executor.on_lost("0-0", "its agent is gone")
    assert executor.causes == ["spool reports-1-5f.jsonl #1", "agent 0-0 lost"]


def test_damaged_end_in_the_spool_of_a_lost_agent_is_a_bad_report_and_a_loss(
    executor: Executor, tmp_path: Path
):
    folder = tmp_path / "trials" / "0"
    folder.mkdir(parents=True)
    (folder / "reports-1-5f.jsonl").write_text('{"final": 1, "time": 100}\n{"ended": {"exit_code": "x"}}\n')
    executor.on_lost("0-0", "its agent is gone")
    report, damage, end = executor.found
    assert isinstance(report, Reported)
    assert isinstance(damage, BadReport)
    assert '{"ended":{"exit_code":"x"}}' in damage.message
    assert isinstance(end, AttemptEnded)
    assert end.lost


def test_checkpoint_in_the_spool_of_a_lost_agent_has_the_value_of_the_main_objective(
    executor: Executor, tmp_path: Path
):
    folder = tmp_path / "trials" / "0"
    folder.mkdir(parents=True)
    (folder / "reports-1-5f.jsonl").write_text('{"intermediate": {"f1": 0.5}}\n{"checkpoint": "1-1"}\n')
    executor.on_lost("0-0", "its agent is gone")
    (saved,) = [event for event in executor.found if isinstance(event, CheckpointSaved)]
    assert saved.value == 0.5


def test_silence_and_loss_of_an_idle_agent_name_the_agent(executor: Executor):
    executor.on_silent("1-0", True)
    executor.on_lost("1-0", "its agent is gone")
    assert executor.causes == ["agent 1-0", "agent 1-0 lost"]


def test_loss_of_an_agent_is_a_warning_unless_it_is_killed_on_purpose(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    executor = Executor(tmp_path)
    caplog.set_level("INFO", logger="pitchpipe")
    executor.on_lost("1-0", "its agent was killed by signal 9")
    executor.kill()
    executor.on_lost("2-0", "its agent ended with exit code 1")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "agent 1-0 is lost: killed by signal 9"),
        ("INFO", "agent 2-0 is lost: ended with exit code 1"),
    ]


def test_agent_that_cannot_be_ended_leaves_no_other_one_behind(tmp_path: Path) -> None:
    class Stuck(Link):
        async def close(self, grace: float) -> None:
            raise OSError("stuck")

    class Slow(Link):
        has_ended = False

        async def close(self, grace: float) -> None:
            for _ in range(9):
                await asyncio.sleep(0)
            self.has_ended = True

    slow = Slow()

    async def close() -> None:
        executor = Executor(tmp_path)
        executor._links = {"0-0": Stuck(), "1-0": slow}
        with pytest.raises(OSError, match="stuck"):
            await executor.close()
        assert slow.has_ended

    asyncio.run(close())
