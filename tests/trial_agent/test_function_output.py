"""What function trials print: each has files of its own, whoever writes and whatever it does to its streams."""

import ctypes
import io
import logging
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from .client import PATIENCE, Client, LocalAgent, start, wait_until
from .test_hosting import outlive, shared

Parameters = dict[str, Any]


@pytest.fixture(autouse=True)
def _shipped_by_value() -> Iterator[None]:
    """Let functions use those of the test modules, which an agent cannot import."""
    modules = [sys.modules[__name__], sys.modules[outlive.__module__]]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "agents.log"


@pytest.fixture
def agent(tmp_path: Path, socket_folder: str, log: Path) -> Iterator[LocalAgent]:
    agent = LocalAgent(tmp_path, socket_folder, log=log)
    yield agent
    agent.stop()


def run(client: Client, number: int, **more: Any) -> dict[str, Any]:
    """Run a trial, which gets its number as a parameter, and return its end."""
    events = client.run(trial=f"t{number}", sequence_id=number, parameters={"number": number}, **more)
    return events[-1]


def printed(agent: LocalAgent, number: int, name: str = "stdout") -> str | None:
    path = agent.trial_file(name, number)
    return path.read_text() if path.exists() else None


def by_print(text: str) -> None:
    print(text)


def by_descriptor(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def by_c_library(text: str) -> None:
    ctypes.CDLL(None).printf(b"%s\n", text.encode())  # it stays in a buffer of the C library


def by_child(text: str) -> None:
    subprocess.run(["echo", text], check=True)


def by_fork(text: str) -> None:
    if (pid := os.fork()) == 0:
        print(text)
        os._exit(0)
    os.waitpid(pid, 0)


def by_thread(text: str) -> None:
    thread = threading.Thread(target=print, args=(text,))
    thread.start()
    thread.join()


def by_interpreters_own_stream(text: str) -> None:
    print(text, file=sys.__stdout__)


WAYS = (by_print, by_descriptor, by_c_library, by_child, by_fork, by_thread, by_interpreters_own_stream)


@pytest.mark.parametrize("way", WAYS)
def test_each_trial_has_what_was_printed_in_it(
    agent: LocalAgent, log: Path, way: Callable[[str], None]
) -> None:
    def train(parameters: Parameters) -> int:
        if parameters["number"] != 2:  # which shares an empty file, as does the one after it
            way(f"epoch {parameters['number']}")
        return 0

    client = agent.function(train)
    assert [run(client, number)["error"] for number in range(5)] == [None] * 5
    assert [printed(agent, n) for n in range(5)] == ["epoch 0\n", "epoch 1\n", None, "epoch 3\n", "epoch 4\n"]
    assert {printed(agent, number, "stderr") for number in range(5)} == {None}
    assert log.read_text() == ""


def test_logging_and_warnings_are_in_stderr(agent: LocalAgent, log: Path) -> None:
    def train(parameters: Parameters) -> int:
        number = parameters["number"]
        logging.basicConfig(format="%(message)s")  # once: its handler keeps the stream of the first trial
        logging.warning("lr of %s is high", number)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(f"{number} is deprecated", stacklevel=1)
        return 0

    client = agent.function(train)
    for number in range(2):
        run(client, number)
        first, second, *_ = (printed(agent, number, "stderr") or "").splitlines()
        assert (first, second.endswith(f"UserWarning: {number} is deprecated")) == (
            f"lr of {number} is high",
            True,
        )
        assert printed(agent, number) is None
    assert log.read_text() == ""


def test_silent_trials_keep_no_file(agent: LocalAgent) -> None:
    client = agent.function(lambda parameters: 1)
    for number in range(3):
        run(client, number)
    assert [*(agent.folder / "trials").iterdir()] == []
    agent.process.terminate()
    assert agent.process.wait(PATIENCE) == 0
    assert {path.name for path in (agent.folder / "agents").iterdir()} == {"agent-1.jsonl"}


def test_output_can_be_followed_while_the_trial_runs(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> int:
        if parameters["number"] == 1:
            print("epoch 1", end="")
            Path(parameters["go"]).read_text()  # a pipe: until the test opens it
        return 0

    client = agent.function(train)
    go = agent.folder / "go"
    os.mkfifo(go)
    run(client, 0)  # quick and silent: the next one begins with the shared files
    client.tell(start(trial="t1", sequence_id=1, parameters={"number": 1, "go": str(go)}))
    wait_until(lambda: printed(agent, 1) == "epoch 1")
    go.write_text("")
    assert client.until_ended("t1")[-1]["error"] is None
    assert printed(agent, 1) == "epoch 1"


def test_kill_of_the_agent_loses_no_word(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        print("last words", end="")
        os.kill(os.getpid(), signal.SIGKILL)

    client = agent.function(train)
    client.tell(start())
    agent.process.wait(PATIENCE)
    assert printed(agent, 0) == "last words"


def test_output_of_the_next_attempt_is_in_a_file_of_its_own(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> int:
        print("began")
        return 0

    client = agent.function(train)
    run(client, 0)
    run(client, 0, attempt=2)
    assert (printed(agent, 0), printed(agent, 0, "stdout-2")) == ("began\n", "began\n")


def close_stream() -> None:
    sys.stdout.close()


def close_descriptor() -> None:
    os.close(1)


def detach() -> None:
    sys.stdout.detach()  # type: ignore[attr-defined]


def replace_stream() -> None:
    sys.stdout = io.StringIO()


def wrap_buffer() -> None:
    io.TextIOWrapper(sys.stdout.buffer).close()


@pytest.mark.parametrize(
    "spoil",
    [close_stream, close_descriptor, detach, replace_stream, wrap_buffer],
    ids=lambda one: one.__name__,
)
def test_trial_that_spoils_its_stdout_spoils_no_other(
    agent: LocalAgent, log: Path, spoil: Callable[[], None]
) -> None:
    def train(parameters: Parameters) -> int:
        print(parameters["number"], flush=True)
        if parameters["number"] == 0:
            spoil()
        return 0

    client = agent.function(train)
    assert [run(client, number)["error"] for number in range(3)] == [None] * 3
    assert [printed(agent, number) for number in range(3)] == ["0\n", "1\n", "2\n"]
    assert log.read_text() == ""


def test_bytes_that_are_no_text_and_long_output_are_kept_as_they_are(agent: LocalAgent) -> None:
    size = 20_000_000

    def train(parameters: Parameters) -> int:
        sys.stdout.buffer.write(bytes(range(256)))
        sys.stdout.buffer.write(b"x" * size)
        print("\udcff end", end="")  # no UTF-8 either
        return 0

    client = agent.function(train)
    assert run(client, 0)["error"] is None
    data = agent.trial_file("stdout").read_bytes()
    assert (data[:256], len(data)) == (bytes(range(256)), 256 + size + len("\\udcff end"))


@pytest.mark.parametrize("how", ["thread", "new_thread", "grandchild", "timer"])
def test_thread_that_outlives_its_trial_prints_into_no_other(agent: LocalAgent, log: Path, how: str) -> None:
    def train(parameters: Parameters) -> int:
        if parameters["number"] == 0:
            go, done = threading.Event(), threading.Event()
            shared().update(go=go, done=done)

            def late() -> None:
                go.wait(30)
                print("late")
                done.set()

            outlive(how, late)
            return 0
        print("first")
        shared()["go"].set()
        assert shared()["done"].wait(30)
        print("second")
        return 0

    client = agent.function(train)
    assert [run(client, number)["error"] for number in range(2)] == [None] * 2
    assert (printed(agent, 0), printed(agent, 1)) == (None, "first\nsecond\n")
    assert log.read_text() == "late\n"


def test_full_disk_is_the_machines_fault(agent_on_small_disk: LocalAgent) -> None:
    def train(parameters: Parameters) -> int:
        for _ in range(8):
            sys.stdout.buffer.write(bytes(1 << 20))
        return 0

    ended = agent_on_small_disk.function(train).run()[-1]
    assert (ended["infra"], "No space left on device" in ended["error"]) == (True, True)
