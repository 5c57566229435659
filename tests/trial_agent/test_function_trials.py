"""Function trials, run in the process of a real agent."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pitchpipe.sdk import NoRunningTrial
from pitchpipe.trial_agent import Job, RunSpec
from pitchpipe.trial_agent.agent_events import Outbox
from pitchpipe.trial_agent.function_channel import FunctionChannel
from pitchpipe.trial_agent.pickling import pickled

from .client import PATIENCE, LocalAgent, read_spool, start, wait_until
from .test_command_trials import reports

Parameters = dict[str, Any]


def run(agent: LocalAgent, function: Callable[[Parameters], Any], **parameters: Any) -> list[dict[str, Any]]:
    return agent.function(function).run(parameters=parameters)


def test_returned_value_is_the_final_result(agent: LocalAgent) -> None:
    events = run(agent, lambda parameters: parameters["x"] * 2, x=0.25)
    assert [event["e"] for event in events] == ["started", "report", "ended"]
    assert reports(events) == [("final", 0, "0.5")]
    assert (events[0]["pid"], events[-1]["exit_code"]) == (agent.process.pid, 0)


def test_events_of_a_short_trial_leave_in_one_reply(agent: LocalAgent) -> None:
    client = agent.function(lambda parameters: 0.5)
    client.run(trial="warm")
    sizes = []
    for number in range(50):
        client.tell(start(trial=f"t{number}"))
        sizes.append(len(client.poll()))
        if sizes[-1] < 3:  # the machine was busy for 2 ms: the rest arrives separately
            client.until_ended(f"t{number}")
    assert sizes.count(3) > 25


def test_first_events_of_a_long_trial_do_not_wait_for_its_end(agent: LocalAgent) -> None:
    def wait(parameters: Parameters) -> None:
        import time

        from pitchpipe import report_intermediate_result

        while not os.path.exists(parameters["go"]):
            time.sleep(0.01)
        report_intermediate_result(1)

    client = agent.function(wait)
    go = agent.folder / "go"
    client.tell(start(parameters={"go": str(go)}))
    assert [event["e"] for event in client.poll()] == ["started"]
    go.touch()
    assert reports(client.until_ended())[0] == ("intermediate", 0, "1")


def test_reports_and_ids_inside_a_function(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> float:
        import numpy

        import pitchpipe as p

        assert p.get_next_parameter() == parameters
        assert (p.get_experiment_id(), p.get_trial_id(), p.get_sequence_id()) == ("exp", "AbCdE", 0)
        p.report_intermediate_result(numpy.float32(0.5))
        p.report_intermediate_result({"default": numpy.int64(2), "array": numpy.array(1.0)})
        p.report_final_result(1)
        return 99.0  # ignored: a final result was reported

    events = run(agent, train, lr=0.1)
    assert events[-1]["error"] is None
    assert reports(events) == [
        ("intermediate", 0, "0.5"),
        ("intermediate", 1, '{"default": 2, "array": 1.0}'),
        ("final", 0, "1"),
    ]


def test_last_report_is_the_result_of_a_function_that_returns_none(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        import pitchpipe as p

        for height in (0.5, 0.25):
            p.report_intermediate_result({"default": height})

    assert reports(run(agent, train))[-1] == ("final", 0, '{"default": 0.25}')


def test_exception_ends_the_trial_with_its_last_lines_and_not_the_agent(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        raise ValueError("x" * 10_000 + f"\udcff bad lr {parameters['lr']}")

    ended = run(agent, train, lr=3)[-1]
    assert (ended["exit_code"], ended["killed"]) == (1, False)
    assert ended["error"].endswith("? bad lr 3")
    assert len(ended["error"]) <= 4096
    assert agent.function(lambda parameters: 1).run(attempt=2)[-1]["exit_code"] == 0


def test_traceback_shows_the_user_function_and_not_the_agent(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        raise ValueError("bad")

    error = run(agent, train)[-1]["error"]
    assert error.startswith("Traceback (most recent call last)")
    assert error.endswith("ValueError: bad")
    assert "trial_agent/function_trial.py" not in error


@pytest.mark.parametrize(
    ("code", "exit_code", "error"),
    [(None, 0, None), (0, 0, None), (3, 3, "sys.exit(3)"), ("no data", 1, "no data")],
)
def test_exit_inside_a_function_ends_its_trial_only(
    agent: LocalAgent, code: object, exit_code: int, error: str | None
) -> None:
    ended = run(agent, lambda parameters: sys.exit(code))[-1]  # type: ignore[arg-type]
    assert (ended["exit_code"], ended["error"]) == (exit_code, error)
    assert agent.process.poll() is None


def test_value_that_is_not_json_fails_the_trial_and_is_named(agent: LocalAgent) -> None:
    ended = run(agent, lambda parameters: object())[-1]
    assert ended["exit_code"] == 1
    assert "cannot report <object object" in ended["error"]


def test_function_that_cannot_be_loaded_ends_the_trial_with_the_reason(agent: LocalAgent) -> None:
    client = agent.function(lambda parameters: 1)
    (agent.folder / "trial.pkl").unlink()
    ended = client.run()[-1]
    assert "trial.pkl" in ended["error"]
    assert ended["exit_code"] == 1


def test_stopped_function_ends_at_its_next_report(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        from pitchpipe import report_intermediate_result

        while True:
            try:
                report_intermediate_result(1)
            except Exception:  # noqa: BLE001 - a careless script must not be able to continue
                continue

    client = agent.function(train)
    client.until_reported()
    ended = client.kill()[-1]
    assert (ended["killed"], ended["exit_code"], ended["error"]) == (True, None, None)


def test_threads_of_a_function_report_and_no_number_is_used_twice(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        import threading

        from pitchpipe import report_intermediate_result

        def report() -> None:
            for _ in range(200):
                report_intermediate_result(1)

        threads = [threading.Thread(target=report) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    events = run(agent, train)
    found = [sequence for kind, sequence, _ in reports(events) if kind == "intermediate"]
    assert found == list(range(800))


class SlowSpool:
    """A spool whose first append lasts until another report is done, or 0.2 s when that has to wait."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.first_is_in = threading.Event()
        self.second_is_done = threading.Event()

    def append(self, line: str) -> None:
        self.lines.append(line)
        if len(self.lines) == 1:
            self.first_is_in.set()
            self.second_is_done.wait(0.2)


def channel_to(spool: SlowSpool, outbox: Outbox, clock: Callable[[], float] = time.time) -> FunctionChannel:
    run = RunSpec(kind="function", experiment="exp", folder="/exp")
    job = Job(trial="AbCdE", attempt=1, sequence_id=0, parameters="{}", run=run)
    return FunctionChannel(job, spool, outbox, clock)  # type: ignore[arg-type]


def test_report_that_is_under_way_when_its_trial_ends_is_refused() -> None:
    def ending() -> float:
        channel.close()
        return 0.0

    spool, outbox = SlowSpool(), Outbox()
    channel = channel_to(spool, outbox, ending)
    with pytest.raises(NoRunningTrial):
        channel.report("intermediate", "1")
    assert (spool.lines, outbox.last) == ([], 0)


def test_order_in_the_spool_is_the_order_of_the_numbers() -> None:
    spool, outbox = SlowSpool(), Outbox()
    channel = channel_to(spool, outbox)
    first = threading.Thread(target=channel.report, args=("intermediate", "1"))
    first.start()
    spool.first_is_in.wait(30)
    channel.report("intermediate", "2")
    spool.second_is_done.set()
    first.join(30)
    assert ['"intermediate": 1' in line for line in spool.lines] == [True, False]
    assert [(e.sequence, e.value) for e in outbox.take(0)[0]] == [(0, "1"), (1, "2")]


def test_forked_child_of_a_function_cannot_report(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> int:
        from pitchpipe import report_intermediate_result

        pid = os.fork()
        if pid == 0:
            try:
                report_intermediate_result(1)
            except RuntimeError:
                os._exit(7)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert reports(run(agent, train)) == [("final", 0, "7")]


def test_shared_spool_holds_what_was_sent(agent: LocalAgent) -> None:
    client = agent.function(lambda parameters: parameters["x"])
    events = []
    for number in range(3):
        events += client.run(trial=f"t{number}", parameters={"x": {"default": number, "nan": float("nan")}})
    sent = [event for event in events if event["e"] != "started"]
    spool = agent.folder / "agents" / "agent-1.jsonl"
    assert [event for number in range(3) for event in read_spool(spool, f"t{number}", 1)] == sent
    assert not (agent.folder / "trials" / "0").exists()


def test_result_survives_the_kill_of_the_agent_right_after_the_report(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        from pitchpipe import report_final_result

        report_final_result(0.75)
        os.kill(os.getpid(), signal.SIGKILL)

    client = agent.function(train)
    client.tell(start())
    agent.process.wait(30)
    assert reports(read_spool(agent.folder / "agents" / "agent-1.jsonl", "AbCdE", 1)) == [
        ("final", 0, "0.75")
    ]


def test_function_that_changed_on_disk_is_loaded_again(agent: LocalAgent) -> None:
    for number in (1, 2):
        client = agent.function(lambda parameters, number=number: number)
        path = agent.folder / "trial.pkl"
        os.utime(path, ns=(number, number))
        assert reports(client.run(attempt=number))[-1] == ("final", 0, str(number))


@pytest.mark.parametrize(
    "place", ["before the library", "after it", "relative", "only in the code directory"]
)
def test_function_imports_what_its_program_imports(
    agent: LocalAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def where(parameters: Parameters) -> list[str]:
        import tabnanny

        import beside  # type: ignore[import-not-found]

        return [os.path.dirname(module.__file__ or "") for module in (beside, tabnanny)]

    before = list(sys.path)
    (mine := tmp_path / "mine").mkdir()
    for name in ("beside.py", "tabnanny.py"):
        (mine / name).touch()
    match place:
        case "before the library":
            monkeypatch.setattr(sys, "path", [str(mine), *sys.path])
        case "after it":
            monkeypatch.setattr(sys, "path", [*sys.path, str(mine)])
        case "relative":
            monkeypatch.chdir(tmp_path)
            monkeypatch.setattr(sys, "path", ["mine", *sys.path])
    (tmp_path / "trial.pkl").write_bytes(pickled(where))
    monkeypatch.chdir("/")
    code = tmp_path if sys.path != before else mine
    client = agent.configured({"kind": "function", "path": "trial.pkl", "code_directory": str(code)})
    hides_library = place in ("before the library", "relative")
    library = str(mine) if hides_library else os.path.dirname(os.__file__)
    assert reports(client.run()) == [("final", 0, json.dumps([str(mine), library]))]


@pytest.mark.parametrize("name", ["__mp_main__", "by_hand", "by_hand.inner"])
@pytest.mark.parametrize("is_called_by_another", [False, True])
def test_function_takes_along_its_module_that_no_other_process_finds(
    agent: LocalAgent, monkeypatch: pytest.MonkeyPatch, name: str, is_called_by_another: bool
) -> None:
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    text = "class Twice:\n  of = 2\ndef double(parameters): return Twice.of * parameters['x']"
    exec(text, vars(module))
    double = (lambda parameters: module.double(parameters)) if is_called_by_another else module.double
    assert reports(run(agent, double, x=2)) == [("final", 0, "4")]


def test_function_is_sent_beside_an_old_finder_of_modules(
    agent: LocalAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, object()])  # without `find_spec`
    module = ModuleType("by_hand")
    monkeypatch.setitem(sys.modules, "by_hand", module)
    exec("def double(parameters): return 2 * parameters['x']", vars(module))
    assert reports(run(agent, module.double, x=2)) == [("final", 0, "4")]


def test_signal_that_comes_just_before_the_function_blocks_is_not_lost(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        import functools
        import hashlib
        import time

        from pitchpipe import report_intermediate_result

        report_intermediate_result(1)
        # No Python code runs between the two, so no signal handler does: as if there were no time between them.
        compute = functools.partial(hashlib.pbkdf2_hmac, "sha256", b"", b"", 3_000_000)
        list(map(functools.partial.__call__, [compute, functools.partial(time.sleep, 600)]))

    client = agent.function(train)
    client.until_reported()
    client.tell({"op": "shutdown"})
    assert agent.process.wait(30) == 0


@pytest.mark.parametrize("way", ["signal", "message"])
def test_agent_that_is_shut_down_interrupts_its_function(agent: LocalAgent, way: str) -> None:
    def train(parameters: Parameters) -> None:
        import time

        from pitchpipe import report_intermediate_result

        report_intermediate_result(1)
        time.sleep(600)

    client = agent.function(train)
    client.until_reported()
    if way == "signal":
        agent.process.terminate()
    else:
        client.tell({"op": "shutdown"})
    assert agent.process.wait(30) == 0
    wait_until(lambda: read_spool(agent.folder / "agents" / "agent-1.jsonl", "AbCdE", 1)[-1]["e"] == "ended")


def test_function_that_closes_its_agents_descriptors_is_told_so_and_gets_no_foreign_bytes(
    agent: LocalAgent, tmp_path: Path
) -> None:
    def careless(parameters: Parameters) -> None:
        import time

        import pitchpipe

        pitchpipe.report_intermediate_result(1)
        os.closerange(3, 256)
        mine = [open(f"{parameters['folder']}/{number}", "w") for number in range(30)]  # noqa: SIM115
        pitchpipe.report_intermediate_result(2)
        time.sleep(PATIENCE)
        mine.clear()

    client = agent.function(careless)
    (tmp_path / "mine").mkdir()
    client.tell(start(parameters={"folder": str(tmp_path / "mine")}))
    assert agent.process.wait(PATIENCE) == 1
    *reported, ended = read_spool(tmp_path / "agents" / "agent-1.jsonl", "AbCdE", 1)
    assert [event["value"] for event in reported] == ["1", "2"][: len(reported)]
    assert (ended["e"], ended["exit_code"]) == ("ended", 1)
    assert "closed descriptors of its agent" in ended["error"]
    assert {path.read_bytes() for path in (tmp_path / "mine").iterdir()} <= {b""}
