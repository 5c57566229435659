"""What all executors with agents share: their events name what caused them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors import RunSetup
from pitchpipe.executors.agents import AgentLink, AgentTrialExecutor
from pitchpipe.executors.trial_executor import Deliver
from pitchpipe.runner import AttemptEnded, AttemptOrder, BadReport, CheckpointSaved, Event, Reported, Totals
from pitchpipe.trial_agent import Keeping, Report, Request, RunSpec, Start, Started

from .bench import setup_of

ORDER = AttemptOrder(
    trial_id="AbCdE", attempt=1, sequence_id=0, record="{}", slot=0, agent="0-0", start_time=100.0, mark="5f"
)
STARTED = Started(trial="AbCdE", attempt=1, pid=7, time=100.0, mark="5f")
REPORT = Report("AbCdE", 1, "final", 0, "1", 100.0, "5f")


class Link(AgentLink):
    """A connection that returns nothing; `sent` has what was sent, with None for each write."""

    def __init__(self) -> None:
        self.sent: list[Request | None] = []

    def send(self, request: Request) -> None:
        self.sent.append(request)

    def flush(self) -> None:
        self.sent.append(None)

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

    def __init__(self, folder: Path, kind: str = "command") -> None:
        super().__init__()
        self.found: list[Event] = []
        self.agents_live = True
        values = {"kind": kind, "command": "true", "keeping": Keeping(metric="f1")}
        self._setup = setup_of(folder, RunSpec(experiment="exp", folder=str(folder), **values))
        self._deliver = self.found.extend

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        raise NotImplementedError

    def _connect(self, agent: str, *, spawn: bool) -> AgentLink | None:
        return Link() if self.agents_live or spawn else None

    def lose_agent(self, spool: str) -> None:
        """Lose the agent of ORDER, which has left this spool."""
        folder = self.setup.folder / "trials" / "0"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "reports-1-5f.jsonl").write_text(spool)
        self.on_lost("0-0", "its agent is gone")

    @property
    def causes(self) -> Sequence[str]:
        return [event.cause for event in self.found]

    @property
    def started(self) -> Sequence[str]:
        """The trials that the agent 0-0 was told to start."""
        return [request.trial for request in self._links["0-0"].sent if isinstance(request, Start)]


@pytest.fixture
def executor(tmp_path: Path) -> Executor:
    executor = Executor(tmp_path)
    executor.start_trial(ORDER)
    return executor


def test_event_names_its_agent_and_its_number_there_and_one_that_is_delivered_again_has_the_same_cause_in_any_batch(
    executor: Executor,
):
    executor.on_batch("0-0", [STARTED], 7)
    executor.on_batch("0-0", [STARTED, REPORT], 8)
    assert executor.causes == ["agent 0-0 #7", "agent 0-0 #7", "agent 0-0 #8"]


def test_event_from_the_spool_of_a_lost_agent_names_the_spool_and_the_end_names_the_loss(executor: Executor):
    executor.lose_agent('{"final": 1, "time": 100}\n')
    assert executor.causes == ["spool reports-1-5f.jsonl #1", "agent 0-0 lost"]


def test_damaged_end_in_the_spool_of_a_lost_agent_is_a_bad_report_and_a_loss(executor: Executor):
    executor.lose_agent('{"final": 1, "time": 100}\n{"ended": {"exit_code": "x"}}\n')
    _, damage, _ = executor.found
    assert isinstance(damage, BadReport)
    assert '{"ended":{"exit_code":"x"}}' in damage.message
    assert summary(executor.found)[::2] == [("Reported", "AbCdE", False), ("AttemptEnded", "AbCdE", True)]


def test_checkpoint_in_the_spool_of_a_lost_agent_has_the_value_of_the_main_objective(executor: Executor):
    executor.lose_agent('{"intermediate": {"f1": 0.5}}\n{"checkpoint": "1-1"}\n')
    (saved,) = [event for event in executor.found if isinstance(event, CheckpointSaved)]
    assert saved.value == 0.5


@pytest.mark.parametrize("durable", [False, True])
def test_checkpoint_whose_name_alone_survived_a_power_cut_does_not_count(
    durable: bool, executor: Executor, tmp_path: Path
) -> None:
    executor._setup = replace(executor.setup, run=replace(executor.setup.run, synced=durable))
    (tmp_path / "trials" / "0" / "checkpoints" / "1-1").mkdir(parents=True)
    executor.lose_agent('{"intermediate": 0.5}\n{"checkpoint": "1-1"}\n')
    kinds = [Reported, *([] if durable else [CheckpointSaved]), AttemptEnded]
    assert [type(event) for event in executor.found] == kinds


def test_hole_in_the_spool_of_a_lost_agent_is_the_loss_of_the_attempt(executor: Executor) -> None:
    executor.lose_agent('{"intermediate": 0.5}\n{"inter' + 4096 * "\0")
    assert summary(executor.found) == [("Reported", "AbCdE", False), ("AttemptEnded", "AbCdE", True)]


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


async def test_agent_that_cannot_be_ended_leaves_no_other_one_behind(tmp_path: Path) -> None:
    class Stuck(Link):
        async def close(self, grace: float) -> None:
            raise OSError("stuck")

    class Slow(Link):
        has_ended = False

        async def close(self, grace: float) -> None:
            for _ in range(9):
                await asyncio.sleep(0)
            self.has_ended = True

    executor, slow = Executor(tmp_path), Slow()
    executor._links = {"0-0": Stuck(), "1-0": slow}
    with pytest.raises(OSError, match="stuck"):
        await executor.close()
    assert slow.has_ended


QUEUE = [replace(ORDER, trial_id=name, start_time=None) for name in ("First", "Secon", "Third", "Fourt")]


def spool(tmp_path: Path, *lines: str) -> None:
    """Write what function trials of the agent 0-0 left: their names, and the end of those with a dot."""
    (tmp_path / "agents").mkdir()
    rows = [
        f'{{"trial": "{name.rstrip(".")}", "attempt": 1, "mark": "5f", '
        + ('"ended": {"exit_code": 0, "time": 100}}' if name.endswith(".") else '"final": 1, "time": 100}')
        for name in lines
    ]
    (tmp_path / "agents" / "0-0.jsonl").write_text("".join(f"{row}\n" for row in rows))


def summary(events: Sequence[Any]) -> list[tuple[str, str, bool]]:
    return [(type(event).__name__, event.trial_id, getattr(event, "lost", False)) for event in events]


LEFT = [
    ("StartRefused", "Fourt", False),
    ("StartRefused", "Third", False),
    ("Reported", "First", False),
    ("AttemptEnded", "First", False),
]


@pytest.mark.parametrize("lines", [("First", "First.", "Secon"), ("First", "First.")])
def test_orders_of_a_lost_agent_that_never_began_are_given_back_in_their_order(
    lines: Sequence[str], tmp_path: Path
) -> None:
    executor = Executor(tmp_path, "function")
    executor.start_together(QUEUE)
    spool(tmp_path, *lines)
    executor.on_lost("0-0", "its agent is gone")
    reports = [("Reported", "Secon", False)] if "Secon" in lines else []
    assert summary(executor.found) == [*LEFT, *reports, ("AttemptEnded", "Secon", True)]
    executor.start_together(QUEUE[2:])
    assert executor.started == ["Third", "Fourt"]


def test_orders_that_an_agent_left_are_given_back_to_the_next_manager(tmp_path: Path) -> None:
    executor = Executor(tmp_path, "function")
    executor.agents_live = False
    spool(tmp_path, "First", "First.")
    asyncio.run(executor.attach(QUEUE))
    assert summary(executor.found) == [*LEFT, ("AttemptEnded", "Secon", True)]


def test_orders_that_left_no_trace_are_sent_again(tmp_path: Path) -> None:
    executor = Executor(tmp_path, "function")
    executor.agents_live = False
    asyncio.run(executor.attach(QUEUE))
    assert executor.found == []
    assert executor.started == [order.trial_id for order in QUEUE]


def test_orders_that_are_started_together_leave_in_one_write(executor: Executor) -> None:
    link = executor._links["0-0"]
    link.sent.clear()
    executor.start_together([replace(ORDER, trial_id=name) for name in ("BcDeF", "CdEfG")])
    assert [request and request.trial for request in link.sent] == ["BcDeF", "CdEfG", None]


def test_events_of_a_forgotten_trial_with_the_same_id_do_not_count(executor: Executor) -> None:
    executor.on_batch("0-0", [replace(STARTED, mark="60"), replace(REPORT, mark="60"), REPORT], 3)
    assert executor.causes == ["agent 0-0 #3"]


def test_order_that_is_given_again_is_sent_once(executor: Executor) -> None:
    executor.start_trial(ORDER)
    assert executor.started == [ORDER.trial_id]


def test_event_is_dated_between_the_start_of_its_attempt_and_now(tmp_path: Path) -> None:
    executor = Executor(tmp_path)
    executor._attempts.add(ORDER, 90.0)
    for time in (80.0, 95.0, 120.0):
        executor.on_batch("0-0", [replace(REPORT, time=time)], 1)
    assert [event.time for event in executor.found] == [90.0, 95.0, 100.0]
