"""How a dispatcher ends: on request, without its manager, or by a failure; and what it acknowledges until then."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

import pytest

from pitchpipe.assessors import Assessor
from pitchpipe.dispatcher import Ending, MemoryChannel, MsgDispatcher, MsgDispatcherBase, PluginFailed
from pitchpipe.dispatcher.msg_dispatcher_base import QUEUE_WARNING_PAUSE_S
from pitchpipe.protocol import CommandType, dumps, loads
from pitchpipe.tuners import Tuner

PATIENCE_S = 20.0


class Obedient(Tuner):
    """Generates when let; `started` tells that it is inside."""

    def __init__(self) -> None:
        self.let, self.started = threading.Event(), threading.Event()
        self.let.set()
        self.generated = 0

    def update_search_space(self, search_space: Any) -> None:
        pass

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        self.started.set()
        assert self.let.wait(PATIENCE_S)
        self.generated += 1
        return {"x": parameter_id}

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError("the result is nothing")


class Quitter(Obedient):
    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        sys.exit("I give up")


class Crashing:
    """An assessor that raises."""

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> bool:
        raise KeyError("missing")


def busy(host: Any, *assessors: Any, tuner: Obedient | None = None) -> tuple[Any, Obedient]:
    """Return a dispatcher whose tuner is inside generate_parameters until it is let, and the tuner."""
    tuner = tuner or Obedient()
    tuner.let.clear()
    one = host(tuner, *assessors)
    one.send(CommandType.RequestTrialJobs, 1)
    assert tuner.started.wait(PATIENCE_S)
    return one, tuner


# guarantee 3: a plug-in that raises


def test_tuner_that_raises_is_reported_and_ends_the_dispatcher(host):
    one = host(Obedient())
    one.request()
    one.final(0, 0.5)
    report = one.expect(CommandType.Error)
    assert one.joined() is Ending.FAILED  # without any further command
    assert (report["plugin"], report["type"], report["command"]) == ("tuner", "ZeroDivisionError", 2)
    assert report["message"] == "the result is nothing"
    assert re.fullmatch(r"test_endings\.py:\d+ in receive_trial_result", report["where"])
    assert report["traceback"].endswith("ZeroDivisionError: the result is nothing\n")
    assert "plugin.py" not in report["traceback"]


class Careless(Obedient):
    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        return loads("{")


def test_report_points_into_the_file_of_the_plug_in(host):
    one = host(Careless())
    one.send(CommandType.RequestTrialJobs, 1)
    report = one.expect(CommandType.Error)
    assert re.fullmatch(r"test_endings\.py:\d+ in generate_parameters", report["where"])
    assert report["type"] == "JsonError"


def test_assessor_that_raises_is_reported_and_ends_the_dispatcher(host):
    one = host(Obedient(), Crashing())
    one.metric("t", 0, 0.5)
    report = one.expect(CommandType.Error)
    assert (report["plugin"], report["type"], report["command"]) == ("assessor", "KeyError", 1)
    assert one.joined() is Ending.FAILED


def test_plug_in_that_calls_exit_is_reported(host):
    one = host(Quitter())
    one.send(CommandType.RequestTrialJobs, 1)
    report = one.expect(CommandType.Error)
    assert (report["type"], report["message"]) == ("SystemExit", "I give up")
    assert one.joined() is Ending.FAILED


def test_failure_is_not_sent_to_another_manager(host):
    one = host(Quitter(), protocol=None)
    one.send(CommandType.RequestTrialJobs, 1)
    assert one.joined() is Ending.FAILED
    assert one.rest() == []
    assert isinstance(one.dispatcher.worker_exceptions[0], PluginFailed)


def test_failure_does_not_wait_for_the_other_worker_for_ever(host):
    one, tuner = busy(host, Crashing())
    one.dispatcher.terminate_grace_s = 0.05
    one.metric("t", 0, 0.5)
    assert one.joined() is Ending.FAILED
    assert one.dispatcher.abandoned == ["default"]
    tuner.let.set()


def test_only_the_first_failure_is_sent(host):
    class Both(Obedient):
        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            super().generate_parameters(parameter_id)
            raise ValueError("second")

    one, tuner = busy(host, Crashing(), tuner=Both())
    one.metric("t", 0, 0.5)
    assert one.expect(CommandType.Error)["plugin"] == "assessor"
    tuner.let.set()
    assert one.joined() is Ending.FAILED
    assert len(one.dispatcher.worker_exceptions) == 2
    assert one.rest_of(CommandType.Error) == []


@pytest.mark.parametrize(
    ("command", "payload"),
    [
        (CommandType.RequestTrialJobs, "{"),
        (CommandType.RequestTrialJobs, '"two"'),
        (CommandType.ReportMetricData, "[]"),
        (CommandType.NewTrialJob, "{}"),
    ],
)
def test_nonsense_from_the_manager_is_reported_as_the_dispatchers(host, command, payload):
    one = host(Obedient())
    one.channel.deliver(command, payload)
    report = one.expect(CommandType.Error)
    assert (report["plugin"], report["command"]) == ("dispatcher", 1)
    assert one.joined() is Ending.FAILED


def test_unhandled_command_has_the_known_message(host):
    one = host(Obedient())
    one.channel.deliver(CommandType.NewTrialJob)
    assert one.expect(CommandType.Error)["message"] == "Unsupported command: CommandType.NewTrialJob"
    one.joined()
    assert isinstance(one.dispatcher.worker_exceptions[0], AssertionError)


# guarantee 4: terminate, and the end of the stream


def let_go_at_the_end(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tuner continue as soon as its worker is asked to end, in any way."""
    worker = one.dispatcher.default_worker
    for name in ("halt", "finish"):
        tell = getattr(worker, name)
        monkeypatch.setattr(worker, name, lambda tell=tell: (tell(), one.dispatcher.tuner.let.set()))


def test_terminate_lets_workers_finish_what_was_sent_before(host, monkeypatch):
    one, tuner = busy(host)
    let_go_at_the_end(one, monkeypatch)
    for _ in range(2):
        one.send(CommandType.RequestTrialJobs, 1)
    assert one.terminate() is Ending.TERMINATED
    assert tuner.generated == 3
    assert len(one.rest_of(CommandType.NewTrialJob)) == 3
    assert one.dispatcher.abandoned == []


def test_worker_that_does_not_finish_is_abandoned(host):
    one, tuner = busy(host)
    one.dispatcher.terminate_grace_s = 0.05
    assert one.terminate() is Ending.TERMINATED
    assert one.dispatcher.abandoned == ["default"]
    tuner.let.set()


def test_end_of_the_stream_discards_what_is_queued(host, monkeypatch):
    one, tuner = busy(host)
    let_go_at_the_end(one, monkeypatch)
    for _ in range(2):
        one.send(CommandType.RequestTrialJobs, 1)
    one.channel.end()
    assert one.joined() is Ending.CLOSED
    assert one.dispatcher.default_worker.wait_until_ended(PATIENCE_S)
    assert tuner.generated == 1


@pytest.mark.parametrize("threads", [0, 2])
def test_idle_dispatcher_ends_at_once(host, threads):
    one = host(Obedient(), threads=threads)
    one.initialize()
    one.dispatcher.terminate_grace_s = 0.0  # so that waiting would show as abandoning
    one.send(CommandType.AddCustomizedTrialJob, [])
    assert one.terminate() is Ending.TERMINATED
    assert one.dispatcher.abandoned == []


# guarantee 5: long queues


def test_long_queue_is_warned_of_now_and_then(caplog):
    now = [0.0]
    dispatcher = MsgDispatcher(Obedient(), clock=lambda: now[0])

    def lengths() -> list[int]:
        return [record.args[0] for record in caplog.records]  # type: ignore[index,misc]

    for _ in range(19):
        dispatcher.enqueue_command(CommandType.Ping, "")
    assert lengths() == []
    for _ in range(100):
        dispatcher.enqueue_command(CommandType.Ping, "")
    assert lengths() == [20]
    now[0] = QUEUE_WARNING_PAUSE_S
    dispatcher.enqueue_command(CommandType.Ping, "")
    assert lengths() == [20, 120]


# acknowledgements


def test_commands_are_acknowledged_by_number_and_queue_after_their_outputs(host):
    one = host(Obedient(), Assessor())
    one.initialize()  # command 1
    one.send(CommandType.RequestTrialJobs, 2)  # 2
    frames = one.processed("default", 2)
    assert [frame.command for frame in frames] == [CommandType.NewTrialJob] * 2
    one.end(0)  # 3, on both queues
    done: list[tuple[str, int]] = []
    while sorted(done) != [("assessor", 3), ("default", 3)]:
        frame = one.receive()
        assert frame.command is CommandType.Processed
        acknowledged = loads(frame.payload)
        if acknowledged != {"queue": "assessor", "n": 1}:  # of the search space, at any time until now
            done.append((acknowledged["queue"], acknowledged["n"]))


def test_assessor_worker_without_an_assessor_is_left_asleep(host):
    one = host(Obedient())
    one.initialize()
    one.end(0)
    assert one.terminate() is Ending.TERMINATED
    assert (one.dispatcher.default_worker.n, one.dispatcher.assessor_worker.n) == (2, 0)


def test_command_before_a_checkpoint_is_acknowledged_although_none_follows(host):
    one, tuner = busy(host)
    done = threading.Event()
    one.dispatcher.default_worker.put_task(lambda worker: done.set())  # so that the queue is not empty
    tuner.let.set()
    assert done.wait(PATIENCE_S)
    one.processed("default", 1)


def test_busy_queue_is_acknowledged_every_64_commands(host):
    one, tuner = busy(host, Assessor())
    for _ in range(199):
        one.send(CommandType.AddCustomizedTrialJob, [])
    one.end(17)
    one.processed("assessor", 201)  # so all of them are queued
    tuner.let.set()
    one.terminate()
    assert [done["n"] for done in one.rest_of(CommandType.Processed)] == [64, 128, 192, 201]


def test_worker_that_leaves_acknowledges_what_it_handled():
    channel = MemoryChannel()
    dispatcher = MsgDispatcher(Obedient(), channel=channel, protocol=1)
    worker = dispatcher.default_worker
    for n in (1, 2):
        worker.put(n, CommandType.Ping, "")
    worker.finish()
    worker.start()
    assert worker.wait_until_ended(PATIENCE_S)
    assert channel.sent.get().payload == '{"queue": "default", "n": 2}'
    assert channel.sent.empty()


class Counting(MemoryChannel):
    """Notes how many frames had been sent at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[int] = []

    def flush(self) -> None:
        self.flushed.append(self.sent.qsize())


def test_frames_of_one_command_leave_together_and_those_of_other_threads_at_once():
    channel = Counting()
    dispatcher = MsgDispatcher(Obedient(), channel=channel, protocol=1)
    dispatcher.send(CommandType.NewTrialJob)
    dispatcher.send(CommandType.NewTrialJob)
    assert channel.flushed == [1, 2]
    worker = dispatcher.default_worker
    worker.put(1, CommandType.RequestTrialJobs, 5)
    worker.start()
    while channel.sent.get(timeout=PATIENCE_S).command is not CommandType.Processed:
        pass
    worker.finish()
    assert worker.wait_until_ended(PATIENCE_S)
    assert len(channel.flushed) == 3


def test_nothing_is_acknowledged_to_another_manager(host):
    one = host(Obedient(), protocol=None)
    one.initialize()
    one.send(CommandType.AddCustomizedTrialJob, [])
    one.terminate()
    assert one.rest() == []


# advisors


class Advisor(MsgDispatcherBase):
    """Tuner and assessor in one, in the way of NNI's."""

    def __init__(self, size: int = 1) -> None:
        super().__init__()
        self.size = size
        self.threads: set[str] = set()

    def handle_initialize(self, data: Any) -> None:
        self.send(CommandType.Initialized, "")

    def handle_request_trial_jobs(self, data: int) -> None:
        self.threads.add(threading.current_thread().name)
        self.send(CommandType.NewTrialJob, dumps({"size": self.size * data}))

    def handle_report_metric_data(self, data: dict[str, Any]) -> None:
        self.threads.add(threading.current_thread().name)
        self.send(CommandType.KillTrialJob, dumps(data["trial_job_id"]))


def test_advisor_handles_everything_on_one_thread(host_base):
    advisor = Advisor(3)
    one = host_base(advisor, None)
    assert one.initialize() is None
    one.send(CommandType.RequestTrialJobs, 2)
    assert one.expect(CommandType.NewTrialJob) == {"size": 6}
    one.metric("t", 0, 0.5)
    assert one.expect(CommandType.KillTrialJob) == "t"
    assert one.terminate() is Ending.TERMINATED
    assert advisor.threads == {"default-worker"}


def test_handler_that_an_advisor_lacks_is_an_error(host_base):
    one = host_base(Advisor())
    one.send(CommandType.TrialEnd, {})
    assert one.expect(CommandType.Error)["message"] == "handle_trial_end"


def test_dispatcher_without_a_channel_says_so():
    with pytest.raises(RuntimeError, match="connect"):
        MsgDispatcher(Obedient()).send(CommandType.Initialized)
