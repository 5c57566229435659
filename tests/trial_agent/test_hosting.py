"""Threads, tasks and children of function trials: what they call is for their own trial, or refused."""

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import pytest

from pitchpipe import TrialStopped, minimize, uniform
from pitchpipe.sdk import NoRunningTrial

from .client import Client, LocalAgent

Parameters = dict[str, Any]


@pytest.fixture(autouse=True)
def _shipped_by_value() -> Iterator[None]:
    """Let functions use those of this module, which an agent cannot import."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def results(events: list[dict[str, Any]], trial: str) -> list[tuple[str, str]]:
    return [(e["kind"], e["value"]) for e in events if e["e"] == "report" and e["trial"] == trial]


def two_trials(agent: LocalAgent, function: Callable[[Parameters], Any]) -> list[dict[str, Any]]:
    """Run the function with `number` 1 and 2, in trials of these names; return all their events."""
    client: Client = agent.function(function)
    events = []
    for number in (1, 2):
        events += client.run(trial=f"t{number}", parameters={"number": number, "folder": str(agent.folder)})
    assert [e["error"] for e in events if e["e"] == "ended"] == [None, None]
    return events


def shared() -> dict[str, Any]:
    """Return a place in the agent that outlives trials."""
    return vars(sys.modules.setdefault("_shared_by_trials", type(sys)("_shared_by_trials")))


STARTERS = ("thread", "new_thread", "grandchild", "pool", "timer", "context")


def outlive(how: str, call: Callable[[], None]) -> None:
    """Let `call` happen in a thread that is started now and outlives the trial."""
    import _thread
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    match how:
        case "thread":
            threading.Thread(target=call, daemon=True).start()
        case "new_thread":
            _thread.start_new_thread(call, ())
        case "grandchild":
            threading.Thread(target=lambda: outlive("thread", call), daemon=True).start()
        case "pool":
            ThreadPoolExecutor(1).submit(call)
        case "timer":
            threading.Timer(0, call).start()
        case "context":
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(call,), daemon=True).start()


@pytest.mark.parametrize("how", STARTERS)
def test_thread_that_outlives_its_trial_reports_for_no_other(agent: LocalAgent, how: str) -> None:
    def train(parameters: Parameters) -> float:
        import pitchpipe

        if parameters["number"] == 1:
            go, done, errors = threading.Event(), threading.Event(), []
            shared().update(go=go, done=done, errors=errors)

            def evaluate() -> None:
                go.wait(30)
                for call in (
                    lambda: pitchpipe.report_intermediate_result(-1),
                    lambda: pitchpipe.report_final_result(-1),
                    lambda: pitchpipe.save_checkpoint({"epoch": -1}),
                ):
                    try:
                        call()
                    except BaseException as error:  # noqa: BLE001 (TrialStopped, too)
                        errors.append(type(error).__name__)
                errors.append(pitchpipe.get_trial_id())
                errors.append(pitchpipe.get_next_parameter()["number"])
                done.set()

            outlive(how, evaluate)
            return 1.0
        pitchpipe.get_next_parameter()
        shared()["go"].set()
        assert shared()["done"].wait(30)
        assert shared()["errors"] == [*["NoRunningTrial"] * 3, "t1", 1]
        assert pitchpipe.get_current_parameter("number") == 2
        return 2.0

    events = two_trials(agent, train)
    assert (results(events, "t1"), results(events, "t2")) == ([("final", "1.0")], [("final", "2.0")])


@pytest.mark.parametrize("how", STARTERS)
def test_thread_of_the_present_trial_reports_for_it(agent: LocalAgent, how: str) -> None:
    def train(parameters: Parameters) -> None:
        import pitchpipe

        done = threading.Event()

        def evaluate() -> None:
            pitchpipe.report_intermediate_result(pitchpipe.get_next_parameter()["number"])
            done.set()

        outlive(how, evaluate)
        assert done.wait(30)

    events = two_trials(agent, train)
    for number in "12":
        assert results(events, f"t{number}") == [("intermediate", number), ("final", number)]


def test_task_of_a_pool_that_trials_share_belongs_to_the_trial_that_submitted_it(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        from concurrent.futures import ThreadPoolExecutor

        import pitchpipe

        pool = shared().setdefault("pool", ThreadPoolExecutor(1))
        called = threading.Event()
        begun = threading.Event()

        def task() -> None:
            begun.wait(30)
            pitchpipe.report_intermediate_result(parameters["number"])

        def callback(future: Any) -> None:
            pitchpipe.report_final_result(10 * parameters["number"])
            called.set()

        future = pool.submit(task)
        future.add_done_callback(callback)
        begun.set()
        assert called.wait(30)

    events = two_trials(agent, train)
    for number in "12":
        assert results(events, f"t{number}") == [("intermediate", number), ("final", f"{number}0")]


def test_coroutine_on_a_loop_that_trials_share_belongs_to_the_trial_that_submitted_it(
    agent: LocalAgent,
) -> None:
    def train(parameters: Parameters) -> None:
        import asyncio

        import pitchpipe

        if "loop" not in shared():
            shared()["loop"] = asyncio.new_event_loop()
            threading.Thread(target=shared()["loop"].run_forever, daemon=True).start()

        async def evaluate() -> None:
            await asyncio.sleep(0)
            pitchpipe.report_intermediate_result(parameters["number"])
            await asyncio.to_thread(pitchpipe.report_intermediate_result, 10 * parameters["number"])

        asyncio.run_coroutine_threadsafe(evaluate(), shared()["loop"]).result(30)

    events = two_trials(agent, train)
    for number in "12":
        values = [value for _, value in results(events, f"t{number}")]
        assert values == [number, f"{number}0", f"{number}0"]


def test_call_from_a_thread_that_no_trial_started_is_refused() -> None:
    go, refused = threading.Event(), []

    def evaluate() -> None:
        import pitchpipe

        go.wait(30)
        with pytest.raises(NoRunningTrial, match="no trial has started this thread"):
            pitchpipe.report_intermediate_result(-1)
        refused.append(True)

    thread = threading.Thread(target=evaluate)
    thread.start()

    def objective(parameters: Parameters) -> float:
        go.set()
        thread.join(30)
        return 1.0

    found = minimize(objective, {"x": uniform(0, 1)}, tuner="Random", n_trials=1, progress=False)
    assert refused == [True]
    assert [trial["intermediate_results"] for trial in found.trials] == [0]


def test_late_thread_of_minimize_reports_for_no_other_trial() -> None:
    go, threads, errors = threading.Event(), [], []

    def objective(parameters: Parameters) -> float:
        import pitchpipe

        def evaluate() -> None:
            go.wait(30)
            try:
                pitchpipe.report_final_result(-1)
                pitchpipe.report_intermediate_result(-1)
            except (NoRunningTrial, TrialStopped) as error:
                errors.append(type(error))

        if not threads:
            threads.append(threading.Thread(target=evaluate))
            threads[0].start()
        else:
            go.set()
            threads[0].join(30)
        return parameters["x"]

    found = minimize(objective, {"x": uniform(0, 1)}, tuner="Random", n_trials=3, seed=1, progress=False)
    assert [trial["final"] for trial in found.trials] == [trial["parameters"]["x"] for trial in found.trials]
    assert [trial["intermediate_results"] for trial in found.trials] == [0, 0, 0]
    assert errors == [NoRunningTrial]


def pool(parameters: Parameters) -> int:
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(2) as workers:
        return sum(workers.map(abs, [-1, -2]))


def terminated(parameters: Parameters) -> int:
    import multiprocessing
    import time

    codes = []
    for _ in range(10):  # at once, too: the signal may come before the child has its handlers
        helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        helper.start()
        helper.terminate()
        helper.join(30)
        codes.append(helper.exitcode)
    assert codes == [-signal.SIGTERM] * 10, codes
    return 3


def interrupted(parameters: Parameters) -> int:
    reader, writer = os.pipe()
    its_reader, its_writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, b".")
            os.read(its_reader, 1)  # pause() would miss a signal that comes just before it
        except KeyboardInterrupt:
            os._exit(3)
        os._exit(4)
    os.read(reader, 1)
    os.kill(pid, signal.SIGINT)
    os.write(its_writer, b".")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("function", [pool, terminated, interrupted])
def test_signal_to_a_forked_child_is_not_one_to_the_agent(
    agent: LocalAgent, function: Callable[[Parameters], int]
) -> None:
    client = agent.function(function)
    for number in range(3):
        events = client.run(trial=f"t{number}")
        assert (events[-1]["error"], results(events, f"t{number}")) == (None, [("final", "3")])


class Interrupting(io.StringIO):
    """Gets Ctrl-C while it prints."""

    def write(self, text: str) -> int:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("leave", "code"),
    [("return", 0), ("raise", 1), ("interrupt", 1), ("exit", 7), ("text", 1), ("thread", 0)],
)
def test_forked_child_that_leaves_the_function_ends_and_says_nothing(
    agent: LocalAgent, leave: str, code: int
) -> None:
    def train(parameters: Parameters) -> int:
        import pitchpipe

        def fork() -> int:
            pid = os.fork()
            if pid == 0 and leave == "thread":
                return 0  # and so does the thread
            return pid

        if leave == "thread":
            found: list[int] = []
            thread = threading.Thread(target=lambda: found.append(fork()))
            thread.start()
            thread.join()
            pid = found[0]
        else:
            pid = fork()
        if pid == 0:
            print("said in the child", end="")
            with pytest.raises(NoRunningTrial):  # its failure would be another exit code
                pitchpipe.report_intermediate_result(-1)
            if leave == "interrupt":
                sys.stderr = Interrupting()
            if leave in ("raise", "interrupt"):
                raise ValueError("in the child")
            if leave != "return":
                sys.exit(7 if leave == "exit" else "a text")
            return -1
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    client = agent.function(train)
    for trial in ("t1", "t2"):
        events = client.run(trial=trial)
        assert (events[-1]["error"], results(events, trial)) == (None, [("final", str(code))])
        assert sum(e["e"] == "ended" for e in events) == 1
    assert agent.process.poll() is None
