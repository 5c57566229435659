"""The agent without a socket, as a Ray actor holds it: calls from several threads, trials in another."""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.trial_agent import WatchdogClient, command_trial, core, environ, poll_sources
from pitchpipe.trial_agent.agent_events import Event, Outbox
from pitchpipe.trial_agent.core import SEEN_LIMIT

from .client import Actor, start, wait_until


@pytest.fixture
def actor(tmp_path: Path) -> Iterator[Actor]:
    with Actor(tmp_path) as actor:
        yield actor


def test_command_trial_off_the_main_thread(actor: Actor) -> None:
    actor.configure(kind="command", command="env; pwd", code_directory=str(actor.folder))
    assert actor.run()[-1]["exit_code"] == 0
    lines = (actor.folder / "trials" / "0" / "stdout").read_text().splitlines()
    assert lines[-1] == str(actor.folder)
    assert f"PATH={Path(sys.executable).parent}:/bin" in lines
    assert not [line for line in lines if line.startswith("RAY_")]


@pytest.mark.parametrize("command", ["kill -9 $$", "sh -c 'kill -9 $$'; exit $?"])
@pytest.mark.parametrize("more", [0, 1])
def test_sigkill_while_the_kernel_killed_for_memory_is_marked_as_such(
    actor: Actor, monkeypatch: pytest.MonkeyPatch, command: str, more: int
) -> None:
    counts = iter([7, 7 + more])
    monkeypatch.setattr("pitchpipe.trial_agent.command_trial.oom_kills", lambda: next(counts))
    actor.configure(kind="command", command=command)
    assert actor.run()[-1].get("out_of_memory", False) == bool(more)


def test_agent_replies_while_its_carrier_sends_an_end(actor: Actor) -> None:
    blocked: list[bool] = []

    def send() -> None:
        asking = threading.Thread(target=actor.agent.handle, args=({"op": "hello"},), daemon=True)
        asking.start()
        asking.join(10)
        blocked.append(asking.is_alive())

    actor.configure(kind="command", command="sleep 600")
    actor.agent.handle(start())
    actor.agent.handle(start("FgHiJ"))
    actor.agent.outbox.on_events = send
    for trial in ("FgHiJ", "AbCdE"):  # one waits, the other runs
        actor.agent.handle({"op": "kill", "trial": trial, "attempt": 1, "grace": 0})
        actor.until_ended(trial)
    wait_until(lambda: len(blocked) >= 2)
    assert not any(blocked)


def test_next_events_come_back_empty_after_the_timeout(actor: Actor) -> None:
    assert actor.agent.next_events(0, 0.01) == {"events": [], "cursor": 0}


def test_time_is_the_clock_s(tmp_path: Path) -> None:
    with Actor(tmp_path, clock=lambda: 12.5) as actor:
        actor.configure(kind="command", command="echo '{\"final\": 1}' >> $PITCHPIPE_REPORTS")
        assert [event["time"] for event in actor.run()] == [12.5] * 3


def test_idle_time_is_counted_only_while_nothing_runs_or_waits(actor: Actor) -> None:
    assert actor.agent.idle_since is not None
    actor.configure(kind="command", command="sleep 600", orphan_timeout=7)
    actor.agent.handle(start())
    assert actor.agent.idle_since is None
    actor.agent.handle({"op": "kill", "trial": "AbCdE", "attempt": 1})
    actor.until_ended()
    assert actor.agent.idle_since is not None
    assert actor.agent.orphan_timeout == 7


def test_agent_whose_only_attempt_was_killed_while_it_waited_is_idle(tmp_path: Path) -> None:
    actor = Actor(tmp_path)
    actor.configure(kind="command", command="true")
    actor.agent.handle(start())
    actor.agent.handle({"op": "kill", "trial": "AbCdE", "attempt": 1})
    assert actor.until_ended()[0]["killed"]
    with actor:
        actor.run(attempt=2)
        assert actor.agent.idle_since is not None


def test_only_so_many_attempts_are_remembered(tmp_path: Path) -> None:
    actor = Actor(tmp_path)
    actor.configure(kind="command", command="true")
    for attempt in range(SEEN_LIMIT + 5):
        actor.agent.handle(start(attempt=attempt))
        actor.agent.handle({"op": "kill", "trial": "AbCdE", "attempt": attempt})
    hello = actor.agent.handle({"op": "hello"})
    assert hello is not None
    assert hello["seen"] == [("AbCdE", attempt) for attempt in range(5, SEEN_LIMIT + 5)]
    actor.agent.close()


def test_folder_that_cannot_be_made_ends_the_attempt_with_the_reason(actor: Actor) -> None:
    (actor.folder / "trials").write_text("a file in the way")
    actor.configure(kind="command", command="true")
    (ended,) = actor.run()
    assert "cannot start the trial" in ended["error"]


def test_command_with_a_null_byte_ends_the_attempt_with_the_reason(actor: Actor) -> None:
    actor.configure(kind="command", command="echo \0")
    assert "null byte" in actor.run()[-1]["error"]


def test_record_that_is_not_text_is_refused(actor: Actor) -> None:
    actor.configure(kind="command", command="true")
    reply = actor.agent.handle({**start(), "parameters": json.loads(start()["parameters"])})
    assert reply is not None
    assert "JSON text" in reply["error"]


def test_environment_at_the_start_is_not_changed_by_what_happens_in_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SET_LATER", "1")
    found = environ.starting_environment()
    assert "SET_LATER" not in found
    assert found["PATH"] == psutil.Process().environ()["PATH"]


ROOM = 100  # reports, or a few more: their sizes differ a little


class SmallOutbox(Outbox):
    """An outbox that is soon full, and the most events that were ever in it."""

    def __init__(self) -> None:
        super().__init__(max_bytes=ROOM * 135)
        self.most = 0

    def put_all(self, events: Iterable[Event], *, urgent: bool = True) -> None:
        super().put_all(events, urgent=urgent)
        self.most = max(self.most, len(self))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Actor]:
    """Yield an agent with a small outbox whose events are not taken yet."""
    monkeypatch.setattr("pitchpipe.trial_agent.core.Outbox", SmallOutbox)
    with Actor(tmp_path) as actor:
        yield actor


def flood(parameters: dict[str, Any]) -> float:
    from pitchpipe import report_intermediate_result

    for number in range(5000):
        report_intermediate_result(number)
    return 1.0


def run_function(actor: Actor, function: Callable[[dict[str, Any]], Any]) -> SmallOutbox:
    actor.configure_function(function)
    actor.agent.handle(start())
    outbox = actor.agent.outbox
    assert isinstance(outbox, SmallOutbox)
    return outbox


def intermediate(events: list[dict[str, Any]]) -> list[int]:
    return [event["sequence"] for event in events if event.get("kind") == "intermediate"]


def test_function_that_reports_in_a_tight_loop_waits_for_acknowledgements(small: Actor) -> None:
    outbox = run_function(small, flood)
    events = small.until_ended()
    assert intermediate(events) == list(range(5000))
    assert (events[-2]["kind"], events[-1]["exit_code"]) == ("final", 0)
    assert outbox.most <= ROOM + 10


def test_function_that_waits_for_acknowledgements_can_be_killed(small: Actor) -> None:
    outbox = run_function(small, flood)
    wait_until(lambda: outbox.is_full, "a full outbox")
    small.agent.handle({"op": "kill", "trial": "AbCdE", "attempt": 1})
    wait_until(lambda: small.agent.idle_since is not None, "the end of the trial")
    lines = (small.folder / "agents" / "agent-1.jsonl").read_text().splitlines()
    assert len(lines) <= ROOM + 10
    assert '"killed":true' in lines[-1]


def test_final_result_does_not_wait_for_acknowledgements(small: Actor) -> None:
    def fill(parameters: dict[str, Any]) -> float:
        from pitchpipe import report_intermediate_result

        report_intermediate_result({"default": 0.5, "pad": "x" * parameters["size"]})
        return 1.0

    small.configure_function(fill)
    outbox = small.agent.outbox
    small.agent.handle(start(parameters={"size": ROOM * 135}))
    wait_until(lambda: small.agent.idle_since is not None, "the end of the trial")
    assert outbox.is_full
    assert '"final": 1.0' in (small.folder / "agents" / "agent-1.jsonl").read_text().splitlines()[-2]


def run_flooding_command(actor: Actor, monkeypatch: pytest.MonkeyPatch, then: str = "true") -> SmallOutbox:
    monkeypatch.setattr(poll_sources, "_CHUNKS", 1)
    command = 'yes \'{"intermediate": 0.5, "time": 1}\' | head -30000 >> $PITCHPIPE_REPORTS'
    actor.configure(kind="command", command=f"{command}; {then}", code_directory=str(actor.folder))
    actor.agent.handle(start())
    outbox = actor.agent.outbox
    assert isinstance(outbox, SmallOutbox)
    return outbox


@pytest.mark.parametrize("then", ["true", "while [ ! -e go ]; do sleep 0.02; done"])
def test_reports_of_a_command_stay_in_its_spool_until_there_is_room(
    small: Actor, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    outbox = run_flooding_command(small, monkeypatch, then)
    wait_until(lambda: outbox.is_full, "a full outbox")
    events = small.until(lambda event: event.get("sequence") == 29999)
    (small.folder / "go").touch()
    if events[-1]["e"] != "ended":
        events += small.until_ended()
    assert events[-1]["exit_code"] == 0
    assert intermediate(events) == list(range(30000))
    assert outbox.most < 3000  # one read of 64 KiB may add these


def test_agent_that_leaves_records_the_end_of_a_command_without_a_manager(
    small: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = run_flooding_command(small, monkeypatch)
    wait_until(lambda: outbox.is_full, "a full outbox")
    small.agent.shutdown()
    small.thread.join(30)
    lines = (small.folder / "trials" / "0" / "reports-1.jsonl").read_text().splitlines()
    assert lines[-1].startswith('{"ended":')
    assert outbox.most < 3000


@pytest.mark.parametrize(
    ("place", "name"),
    [(command_trial.Follower, "read"), (WatchdogClient, "expect")],
)
def test_fault_of_the_agent_ends_the_attempt_with_its_traceback(
    actor: Actor, monkeypatch: pytest.MonkeyPatch, place: type, name: str
) -> None:
    """An agent that went on without a word would leave the trial running forever."""

    def fail(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    report = """echo '{"final": 1}' >> $PITCHPIPE_REPORTS"""
    actor.configure(kind="command", command=f"{report}; sleep 600", code_directory=str(actor.folder))
    with monkeypatch.context() as patch:
        patch.setattr(place, name, fail)
        events = actor.run()
    assert "Traceback" in events[-1]["error"]
    assert "RuntimeError: broken on purpose" in events[-1]["error"]
    assert not [pid for event in events if (pid := event.get("pid")) and psutil.pid_exists(pid)]
    actor.configure(kind="command", command=report, code_directory=str(actor.folder))
    assert actor.run(trial="after")[-1]["exit_code"] == 0


def queue_of_functions(tmp_path: Path, *calls: str) -> Actor:
    """Return an agent that has got an order for each call of a function, and runs none yet."""

    def train(parameters: dict[str, Any]) -> float:
        with (tmp_path / "calls").open("a") as file:
            file.write(parameters["call"])
        return 1.0

    actor = Actor(tmp_path)
    actor.configure_function(train)
    for number, call in enumerate(calls, 1):
        actor.agent.handle(start(attempt=number, parameters={"call": call}))
    return actor


def test_events_of_queued_functions_leave_with_the_end_of_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "HOLD", 60.0)  # no end of time releases them
    actor = queue_of_functions(tmp_path, "a", "b", "c")
    batches: list[list[Any]] = []
    actor.agent.outbox.on_events = lambda: batches.append(actor.agent.next_events(0, 0.0)["events"])
    with actor:
        wait_until(lambda: batches, "a batch")
    ended = [event["attempt"] for event in batches[0] if event["e"] == "ended"]
    assert (len(batches), ended) == (1, [1, 2, 3])


def test_queued_function_that_is_killed_never_begins(tmp_path: Path) -> None:
    actor = queue_of_functions(tmp_path, "a", "b", "c")
    actor.agent.handle({"op": "kill", "trial": "AbCdE", "attempt": 2})
    with actor:
        wait_until(lambda: (tmp_path / "calls").exists() and (tmp_path / "calls").read_text().endswith("c"))
    events = actor.agent.next_events(0, 0)["events"]
    killed = [event["attempt"] for event in events if event["e"] == "ended" and event["killed"]]
    assert (tmp_path / "calls").read_text() == "ac"
    assert killed[0] == 2
