"""A dispatcher that follows a script: numbers, replay, divergence, restoring, clogging, silence."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.executors.tasks import Heartbeat
from pitchpipe.manager.dispatcher_link import dispatcher
from pitchpipe.manager.dispatcher_link.dispatcher import Dispatcher, DispatcherSetup
from pitchpipe.manager.dispatcher_link.dispatcher_process import DispatcherProcess
from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import SendCommand
from pitchpipe.store.dispatcher_record import DispatcherRecord, RecordRow, SavedState

pytestmark = pytest.mark.dispatcher_process
PATIENCE_S = 60.0

# A dispatcher in the test's hands: it writes down what it receives, and answers each command as `script` says:
# {"GE": [["TR", {...}], ...]}, where n stands for the command's number in this process. "exit" ends it with that code,
# "stop" lets it read no more, "rubbish" lets it write these words, "deaf" lets it answer no Ping.
PEER = """
import json, os, sys, time
from pitchpipe.protocol import CommandType, FrameDecoder, encode_frame
script, decoder, n = json.loads(sys.argv[1]), FrameDecoder(), 0
log = open(sys.argv[2], "a")
print(" ".join(sys.argv[3:]), file=log, flush=True)

def say(code, payload):
    text = "" if payload is None else json.dumps(payload)
    os.write(4, encode_frame(CommandType(code.encode()), text))

def answer(answers):
    for code, payload in answers:
        if code == "exit":
            os._exit(payload)
        elif code == "stop":
            time.sleep(600)
        elif code == "rubbish":
            os.write(4, payload.encode())
        else:
            say(code, payload)

answer(script.get("start", []))
while data := os.read(3, 65536):
    for frame in decoder.feed(data):
        code = frame.command.value.decode()
        if code == "PI":
            if "deaf" not in script:
                say("PI", None)
            continue
        if code == "TE":
            os._exit(0)
        n += 1
        print(n, code, frame.payload[:60], file=log, flush=True)
        answer(script.get(code, []))
        for queue in script.get("queues", {}).get(code, ["default", "assessor"]):
            say("PR", {"queue": queue, "n": n})
"""

FORGETFUL = ["ID", {"protocol": 1, "periodical_queues": [], "learns": False}]
DIED = "the dispatcher process ended with exit code "
READY = ["ID", {"protocol": 1, "periodical_queues": ["assessor"]}]


def parameters(number: int) -> list[Any]:
    return ["TR", {"parameter_id": number, "parameters": {"x": number}}]


def kill(trial: str) -> list[Any]:
    return ["KI", {"trial_job_id": trial, "reason": "bad"}]


class Kept:
    """What the store keeps of a dispatcher: its record, and its checkpoints, the last one last."""

    def __init__(self, folder: Path) -> None:
        self.record = DispatcherRecord()
        self.checkpoints: list[SavedState] = []
        self._folder = folder

    def keep(self, saved: SavedState, record: DispatcherRecord | None = None) -> None:
        """Keep a checkpoint, and what is recorded since then."""
        (self._folder / saved.path).touch()
        self.checkpoints.append(saved)
        self.record = record or DispatcherRecord(saved=saved)

    def dispatcher_record(self, saved: SavedState | None) -> DispatcherRecord:
        assert saved == self.record.saved
        return self.record

    def dispatcher_checkpoint(self) -> SavedState | None:
        return self.checkpoints[-1] if self.checkpoints else None

    def drop_dispatcher_checkpoint(self, saved: SavedState) -> None:
        self.checkpoints.remove(saved)


class Table:
    """A dispatcher with its peer on one side and the test on the other."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self.folder, self.timeout = folder, timeout
        for name in ("logs", "checkpoint"):
            (folder / name).mkdir()
        (folder / "peer.py").write_text(PEER)
        self.kept = Kept(folder / "checkpoint")
        self.events: list[Any] = []
        self._changed = asyncio.Event()
        self._command = [""]
        setup = DispatcherSetup(
            config={}, folder=self.folder, clock=lambda: 5.0, command=self._command, timeout=self.timeout
        )
        store: Any = self.kept
        self.dispatcher = Dispatcher(setup, store, dict, self.hear)
        self.batches = 0

    def hear(self, events: Sequence[Any]) -> None:
        self.events += events
        self.batches += not events
        self._changed.set()

    def says(self, **script: Any) -> None:
        """Set what the next peer replies to each command."""
        log = str(self.folder / "peer.log")
        self._command[:] = [sys.executable, "-P", str(self.folder / "peer.py"), json.dumps(script), log]

    @property
    def diverged(self) -> list[str]:
        return [event.reason for event in self.restores() if event.from_results]

    def restores(self) -> list[happened.RestoreNeeded]:
        return [event for event in self.events if isinstance(event, happened.RestoreNeeded)]

    def replies(self) -> list[RecordRow]:
        """Return the replies since the last call, which the store would keep."""
        return list(self.dispatcher.take_replies()[0])

    async def restore(self, record: list[RecordRow]) -> None:
        """Replace the peer by one that gets these commands."""
        self.kept.record = DispatcherRecord(record)
        await self.dispatcher.restore("it is time")

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something to become so."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def answered(self) -> None:
        await self.until(lambda: self.dispatcher.has_answered_all)

    async def failed(self) -> None:
        await self.until(lambda: "DispatcherFailed" in self.kinds())

    async def begin(self, *commands: SendCommand, **script: Any) -> list[RecordRow]:
        """Initialize a new peer, and send more commands; returns what the store would keep of them."""
        self.says(**{"IN": [READY], **script})
        await self.dispatcher.start()
        return self.send(IN, *commands)

    def send(self, *commands: SendCommand) -> list[RecordRow]:
        """Send commands; returns what the store would keep of them."""
        numbered = self.dispatcher.number(commands)
        self.dispatcher.write(numbered)
        return [command.record() for command in numbered]

    def heard(self) -> list[str]:
        """Return what peers noted: their extra arguments when they started, then their commands."""
        return (self.folder / "peer.log").read_text().splitlines()

    def codes(self) -> list[str]:
        return [line[:4] for line in self.heard()]

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


IN = SendCommand(CommandType.Initialize, "{}")
GE = SendCommand(CommandType.RequestTrialJobs, "1")
EN = SendCommand(CommandType.TrialEnd, "{}")
PERIODICAL = SendCommand(CommandType.ReportMetricData, '{"type":"PERIODICAL","n":1}', is_periodical=True)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def table(tmp_path: Path, request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[Table]:
    table = Table(tmp_path, getattr(request, "param", 600.0))
    yield table
    with contextlib.suppress(TimeoutError):
        runner.run(table.dispatcher.terminate(0.0))


async def test_commands_are_numbered_in_order_and_replies_recorded(table: Table) -> None:
    sent = await table.begin(GE, EN, GE=[parameters(0)], EN=[kill("AbCdE")])
    assert sent == [(1, "IN", "{}"), (2, "GE", "1"), (3, "EN", "{}")]
    await table.answered()
    assert table.codes() == ["", "1 IN", "2 GE", "3 EN"]
    assert [(n, code) for n, code, _ in table.replies()] == [(1, "TR"), (2, "KI")]
    assert table.replies() == []
    assert table.kinds() == ["DispatcherReady", "ParametersArrived", "KillVerdict"]
    assert table.events[1] == happened.ParametersArrived(5.0, 0, json.dumps(parameters(0)[1]))
    assert table.events[2] == happened.KillVerdict(5.0, "AbCdE", "bad")


async def test_pause_and_resume_are_events(table: Table) -> None:
    pause = ["PA", {"trial_job_id": "AbCdE", "reason": "rung 0", "by": "tuner"}]
    asked = {"trial_job_id": "AbCdE", "parameters": {"x": 1}, "checkpoint_of": "FgHiJ", "budget": 9}
    await table.begin(IN=[READY, pause, ["RE", asked], ["RE", {**asked, "pauses_at_budget": True}]])
    await table.answered()
    resumed = happened.ResumeRequested(5.0, "AbCdE", parameters={"x": 1}, checkpoint_of="FgHiJ", budget=9)
    assert table.events[1:] == [
        happened.PauseVerdict(5.0, "AbCdE", "rung 0"),
        resumed,
        replace(resumed, pauses_at_budget=True),
    ]


class SlowToStart(DispatcherProcess):
    """A dispatcher that has said all that it says by itself before its manager gets round to listening."""

    async def start(self, *arguments: Any) -> None:
        self.has_spoken = asyncio.Event()
        await super().start(*arguments)
        await self.has_spoken.wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.has_spoken.set()


@pytest.fixture
def slow_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "DispatcherProcess", SlowToStart)


@pytest.mark.usefixtures("slow_to_start")
async def test_dispatcher_that_is_ready_before_its_manager_listens_is_ready(table: Table) -> None:
    saved = SavedState(1, "one.pkl", 0, 0)
    table.says(start=[READY])
    table.kept.keep(saved)
    await table.dispatcher.start()
    await table.until(lambda: table.dispatcher.has_answered_all)
    assert table.kinds() == ["DispatcherReady"]


@pytest.mark.usefixtures("slow_to_start")
async def test_checkpoint_refused_before_the_manager_listens_is_reported_with_the_reason(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    saved = SavedState(2, "two.pkl", 1, 1)
    table.says(start=[["CK", {"unusable": "is damaged"}], ["exit", 3]])
    table.kept.keep(saved)
    await table.dispatcher.start()
    await table.until(lambda: bool(table.restores()))
    assert table.kept.checkpoints == []
    assert caplog.records[-1].args == ("two.pkl", "it is damaged")


async def test_nothing_is_answered_before_the_dispatcher_is_ready(table: Table) -> None:
    table.says(IN=[], GE=[READY])
    await table.dispatcher.start()
    assert table.dispatcher.is_new
    assert not table.dispatcher.has_answered_all
    table.send(IN)
    await table.until(lambda: table.batches > 0)
    assert not table.dispatcher.has_answered_all
    table.send(GE)
    await table.answered()


RECORDED = DispatcherRecord(
    [(1, "IN", "{}"), (2, "GE", "1"), (3, "EN", "{}")],
    [(1, "TR", json.dumps(parameters(0)[1])), (2, "KI", json.dumps(kill("AbCdE")[1]))],
)


async def test_recorded_replies_are_compared_and_not_delivered_again(table: Table) -> None:
    # The assessor is quicker this time: order counts within a queue only.
    table.says(IN=[READY], GE=[kill("AbCdE"), parameters(0)], EN=[parameters(1)])
    table.kept.record = RECORDED
    await table.dispatcher.start()
    await table.answered()
    assert table.kinds() == ["DispatcherReady", "ParametersArrived"]
    assert table.replies() == [(3, "TR", json.dumps(parameters(1)[1]))]
    assert table.send(GE) == [(4, "GE", "1")]
    assert table.diverged == []


@pytest.mark.parametrize("other", [parameters(7), ["NO", {"parameter_id": 0}]], ids=["value", "kind"])
async def test_first_difference_is_a_divergence_and_silences_the_peer(other: list[Any], table: Table) -> None:
    table.says(IN=[READY], GE=[other, parameters(8)])
    table.kept.record = RECORDED
    await table.dispatcher.start()
    await table.until(lambda: bool(table.diverged))
    assert json.dumps(other[1]) in table.diverged[0]
    assert table.replies() == []
    assert table.kinds() == ["DispatcherReady", "RestoreNeeded"]
    assert not table.dispatcher.has_answered_all


async def test_verdicts_of_the_tuner_are_compared_with_the_tuner_s(table: Table) -> None:
    pause = {"trial_job_id": "AbCdE", "reason": "", "by": "tuner"}
    replies = [(1, "PA", json.dumps(pause)), (2, "TR", json.dumps(parameters(0)[1]))]
    table.says(IN=[READY], GE=[parameters(0), ["PA", pause]])
    table.kept.record = DispatcherRecord([(1, "IN", "{}"), (2, "GE", "1")], replies)
    await table.dispatcher.start()
    await table.until(lambda: bool(table.diverged))


async def test_restart_tells_a_fresh_peer_what_is_committed_by_then(table: Table) -> None:
    error = ["ER", {"plugin": "tuner", "type": "E", "message": "m", "command": 2}]
    committed = await table.begin(GE, GE=[error, ["exit", 1]])
    await table.failed()
    assert table.events[-1].message == "the tuner raised E: m"
    table.says(IN=[READY], GE=[parameters(0)])
    restarting = asyncio.ensure_future(table.restore(committed))
    committed += table.send(GE)  # without a dispatcher
    await restarting
    await table.answered()
    assert table.codes() == ["", "1 IN", "2 GE", "", "1 IN", "2 GE", "3 GE"]
    assert table.kinds().count("DispatcherFailed") == 1  # its end, too, was that of a peer that is replaced
    assert table.kinds().count("ParametersArrived") == 2


async def test_replies_that_are_not_committed_yet_are_not_delivered_again_after_a_restart(
    table: Table,
) -> None:
    committed = await table.begin(GE, GE=[parameters(0), kill("AbCdE"), ["exit", 1]])
    await table.failed()
    table.says(IN=[READY], GE=[parameters(0), kill("AbCdE"), parameters(1)])
    await table.restore(committed)
    await table.answered()
    assert [event.parameter_id for event in table.events if hasattr(event, "parameter_id")] == [0, 1]
    assert table.kinds().count("KillVerdict") == 1
    replies = [(1, "TR", parameters(0)), (2, "KI", kill("AbCdE")), (3, "TR", parameters(1))]
    assert table.replies() == [(n, code, json.dumps(reply[1])) for n, code, reply in replies]
    assert table.diverged == []


async def test_peer_that_talks_rubbish_is_ended_when_it_is_replaced(table: Table) -> None:
    committed = await table.begin(GE, GE=[["rubbish", "this is no frame at all"], ["stop", 0]])
    await table.failed()
    pid = table.dispatcher.pid
    assert pid is not None
    assert psutil.pid_exists(pid)
    table.says(IN=[READY])
    await table.restore(committed)
    assert not psutil.pid_exists(pid)
    await table.answered()
    assert table.kinds().count("DispatcherFailed") == 1


async def test_end_of_the_process_is_a_failure_at_the_first_command_undone(table: Table) -> None:
    await table.begin(GE, GE=[["exit", 4]])
    await table.failed()
    failure = table.events[-1]
    assert (failure.message, failure.command, failure.died) == (f"{DIED}4", 2, True)


async def test_queue_that_has_nothing_to_do_is_not_behind(table: Table) -> None:
    await table.begin(GE, GE, AD=[["exit", 4]], queues={"IN": ["default"], "GE": ["default"]})
    await table.answered()
    table.send(SendCommand(CommandType.AddCustomizedTrialJob, "[]"))
    await table.failed()
    assert table.events[-1].command == 4


async def test_checkpoint_counts_from_its_marks_on(table: Table) -> None:
    mark = ["CK", {"queue": "default", "n": 2}]
    rest = [["CK", {"queue": "assessor", "n": 2}], ["CK", {"path": "two.pkl", "n": 2}]]
    await table.begin(GE, GE=[parameters(0), mark, parameters(1), kill("AbCdE"), *rest])
    await table.answered()
    assert table.dispatcher.take_replies()[1] == [SavedState(2, "two.pkl", 1, 3)]
    assert table.dispatcher.take_replies()[1] == []


async def test_checkpoint_without_the_mark_of_a_queue_does_not_count(table: Table) -> None:
    marks = [["CK", {"queue": "default", "n": 1}], ["CK", {"queue": "assessor", "n": 2}]]
    await table.begin(GE, GE=[*marks, ["CK", {"path": "two.pkl", "n": 2}]])
    await table.answered()
    assert table.dispatcher.take_replies()[1] == []


async def test_restored_peer_gets_what_came_after_and_gives_again_only_that(table: Table) -> None:
    saved = SavedState(2, "two.pkl", default_reply=1, assessor_reply=3)
    second = (2, "TR", json.dumps(parameters(1)[1]))
    third = (3, "KI", json.dumps(kill("AbCdE")[1]))
    recorded = DispatcherRecord([(3, "GE", "1")], [second, third], saved)
    table.says(start=[READY], GE=[parameters(1), parameters(2)])
    table.kept.keep(saved, recorded)
    await table.dispatcher.start()
    await table.until(lambda: "ParametersArrived" in table.kinds())
    assert table.heard()[0] == f"--restore {table.folder}/checkpoint/two.pkl"
    assert table.replies() == [(4, "TR", json.dumps(parameters(2)[1]))]
    assert table.diverged == []
    assert table.send(GE)[0][0] == 4


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ([["CK", {"unusable": "is damaged"}], ["exit", 3]], "it is damaged"),
        ([["exit", 3]], f"{DIED}3"),
        ([["exit", 1]], f"{DIED}1"),
        ([READY, ["exit", 1]], f"{DIED}1"),
    ],
    ids=["it says why", "it says nothing", "it fails at the load", "it fails when it is ready"],
)
async def test_unusable_checkpoint_is_reported_and_is_not_a_failure(
    script: list[Any], why: str, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    saved = SavedState(2, "two.pkl", 1, 1)
    table.says(start=script)
    table.kept.keep(saved)
    await table.dispatcher.start()
    await table.until(lambda: bool(table.restores()))
    assert caplog.records[-1].args == ("two.pkl", why)
    assert table.kept.checkpoints == []
    assert not (table.folder / "checkpoint" / "two.pkl").exists()
    assert table.diverged == []
    assert "DispatcherFailed" not in table.kinds()


async def test_dispatcher_whose_start_is_cancelled_ends_by_itself(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An experiment that ends while its dispatcher is replaced can no longer tell the new one."""

    async def cancelled(*_: Any) -> Any:
        raise asyncio.CancelledError

    table.says(start=[READY])
    monkeypatch.setattr(asyncio.get_running_loop(), "connect_write_pipe", cancelled)
    with pytest.raises(asyncio.CancelledError):
        await table.dispatcher.start()
    assert table.dispatcher.pid is not None
    peer = psutil.Process(table.dispatcher.pid)
    async with asyncio.timeout(PATIENCE_S):
        await table.dispatcher.terminate(2 * PATIENCE_S)
    assert not peer.is_running()


async def test_end_that_was_asked_for_does_not_cost_the_checkpoint(table: Table) -> None:
    saved = SavedState(2, "two.pkl", 1, 1)
    table.says(start=[READY])
    table.kept.keep(saved)
    await table.dispatcher.start()
    await table.until(lambda: "DispatcherReady" in table.kinds())
    await table.dispatcher.terminate(PATIENCE_S)
    assert (table.kept.checkpoints, table.restores()) == ([saved], [])


ERROR = ["ER", {"plugin": "tuner", "type": "AttributeError", "message": "no", "command": 3}]


@pytest.mark.parametrize("is_loaded", [True, False])
async def test_checkpoint_is_in_doubt_when_a_plug_in_fails_after_it_was_restored(
    is_loaded: bool, table: Table
) -> None:
    saved = SavedState(2, "two.pkl", 1, 1)
    marks = [["CK", {"queue": queue, "n": 3}] for queue in ("default", "assessor")]
    table.says(start=[READY, *marks, ["CK", {"path": "three.pkl", "n": 3}], ERROR] if is_loaded else [ERROR])
    table.kept.keep(saved)
    await table.dispatcher.start()
    await table.failed()
    assert table.kept.checkpoints == ([] if is_loaded else [saved])  # else a plug-in could not be loaded
    assert table.dispatcher.take_replies()[1] == []
    assert table.restores() == []


async def test_last_replies_can_be_kept_back(table: Table) -> None:
    await table.begin(GE, GE=[parameters(0), parameters(1), parameters(2)])
    await table.answered()
    table.dispatcher.unprocessed = 2
    assert [n for n, _, _ in table.replies()] == [1]
    table.dispatcher.unprocessed = 0
    assert [n for n, _, _ in table.replies()] == [2, 3]


async def test_dispatcher_is_full_until_its_peer_reads(table: Table) -> None:
    await table.begin(GE, GE=[["stop", 0]])
    assert not table.dispatcher.is_full
    table.send(SendCommand(CommandType.ImportData, "1" * 2_000_000))
    assert table.dispatcher.is_full
    table.says(IN=[READY])
    await table.restore([])
    assert not table.dispatcher.is_full


@pytest.mark.parametrize("table", [0.5], indirect=True)  # seconds of silence
async def test_silent_peer_is_given_up(table: Table) -> None:
    await table.begin(deaf=True)
    await table.failed()
    assert table.events[-1].message == "the dispatcher gave no sign of life for 0.5 s"
    assert not table.dispatcher.has_answered_all


async def test_reply_to_a_ping_is_a_sign_of_life_and_commands_keep_their_numbers(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    hearts: list[Heart] = []

    class Heart(Heartbeat):
        """A heartbeat that beats when the test says so, and counts the signs of life."""

        def __init__(
            self, *, timeout: float, beat: Callable[[], None], on_silence: Callable[[], None]
        ) -> None:
            super().__init__(timeout=timeout, beat=beat, on_silence=on_silence)
            self.beat, self.signs = beat, 0
            hearts.append(self)

        def heard(self) -> None:
            super().heard()
            self.signs += 1

    monkeypatch.setattr("pitchpipe.manager.dispatcher_link.dispatcher.Heartbeat", Heart)

    await table.begin(GE=[parameters(0)])
    await table.answered()
    (heart,) = hearts
    heard = heart.signs
    heart.beat()
    await table.until(lambda: heart.signs > heard)
    assert "DispatcherFailed" not in table.kinds()
    assert table.send(GE) == [(2, "GE", "1")]
    await table.answered()


@pytest.mark.parametrize(
    ("named", "command", "answering"),
    [
        pytest.param(["default"], PERIODICAL, "default", id="result to a tuner"),
        pytest.param(["assessor"], PERIODICAL, "assessor", id="result to an assessor"),
        pytest.param(["default"], EN, "default", id="nothing awaited from a missing assessor"),
        pytest.param([], EN, "default", id="nor where none wants results"),
    ],
)
async def test_answers_are_awaited_from_the_queues_that_the_dispatcher_names(
    named: list[str], command: SendCommand, answering: str, table: Table
) -> None:
    ready = ["ID", {"protocol": 1, "periodical_queues": named}]
    table.says(IN=[ready], queues={command.command.value.decode(): [answering]})
    table.kept.record = DispatcherRecord([(1, "IN", "{}")])
    await table.dispatcher.start()
    await table.answered()
    table.send(command)
    assert not table.dispatcher.has_answered_all
    await table.answered()


async def test_what_a_tuner_only_notes_leaves_with_the_next_request(table: Table) -> None:
    await table.begin(IN=[FORGETFUL], GE=[parameters(0)])
    await table.until(lambda: table.kinds() == ["DispatcherReady"])
    await table.answered()
    written = []
    write, table.dispatcher._process.write = table.dispatcher._process.write, written.append
    table.send(EN)
    table.send(EN)
    assert written == []
    assert not table.dispatcher.has_answered_all
    table.send(GE)
    assert [data.count(b"EN") for data in written] == [2]
    write(written[0])
    await table.answered()
    assert table.codes() == ["", "1 IN", "2 EN", "3 EN", "4 GE"]


@pytest.mark.parametrize("is_over", [False, True], ids=["soon", "at the end"])
async def test_what_a_tuner_only_notes_leaves(is_over: bool, table: Table) -> None:
    await table.begin(IN=[FORGETFUL])
    await table.answered()
    table.send(EN)
    await (table.dispatcher.terminate(PATIENCE_S) if is_over else table.answered())
    assert table.codes() == ["", "1 IN", "2 EN"]


async def test_peer_that_is_replaced_gets_nothing_that_its_record_holds(table: Table) -> None:
    record = await table.begin(IN=[FORGETFUL])
    await table.answered()
    record += table.send(EN)
    await table.restore(record)
    await table.until(lambda: len(table.events) == 2)
    await table.answered()
    assert table.codes() == ["", "1 IN", "", "1 IN", "2 EN"]
