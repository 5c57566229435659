"""A minimal manager: starts a real agent process and talks to it over its socket, synchronously."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cloudpickle
import psutil

from pitchpipe.trial_agent import Agent, Event, MessageDecoder, encode_message
from pitchpipe.trial_agent import read_spool as read_events
from pitchpipe.trial_agent.agent_events import encode_event
from pitchpipe.trial_agent.pickling import pickled
from pitchpipe.trial_agent.watchdog import each_process, environment_of

from ..forked_agents import Popen

TOKEN = "open sesame"
PATIENCE = 30.0  # seconds; every wait in these tests is bounded by it


class Client:
    """One connection to an agent."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self._decoder = MessageDecoder()
        self._messages: list[dict[str, Any]] = []
        self.cursor = 0
        self.welcome: dict[str, Any] = {}

    def greet(self, token: str) -> None:
        self.welcome = self.ask({"op": "hello", "token": token, "experiment": "exp"})

    def tell(self, *messages: dict[str, Any]) -> None:
        self.socket.sendall(b"".join(encode_message(message) for message in messages))

    def receive(self) -> dict[str, Any]:
        while not self._messages:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError("the agent closed the connection")
            self._messages += self._decoder.feed(data)
        return self._messages.pop(0)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self.tell(message)
        return self.receive()

    def until_reported(self, **more: Any) -> list[dict[str, Any]]:
        """Start an attempt and return its events up to the first report."""
        self.tell(start(**more))
        return self.events_until(lambda event: event["e"] == "report")

    def kill(self, **more: Any) -> list[dict[str, Any]]:
        """Kill the attempt and return its events up to its end."""
        self.tell({"op": "kill", "trial": "AbCdE", "attempt": 1, **more})
        return self.until_ended()

    def settle(self) -> None:
        """Return when the agent has handled what it was told."""
        self.ask({"op": "hello"})

    def poll(self) -> list[dict[str, Any]]:
        reply = self.ask({"op": "poll", "after": self.cursor})
        self.cursor = reply["cursor"]
        return reply["events"]

    def events_until(self, done: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Collect events up to the batch with one that is `done`."""
        found: list[dict[str, Any]] = []
        while True:
            batch = self.poll()
            found += batch
            if any(done(event) for event in batch):
                return found

    def until_ended(self, trial: str = "AbCdE", attempt: int = 1) -> list[dict[str, Any]]:
        return self.events_until(lambda e: (e["e"], e["trial"], e["attempt"]) == ("ended", trial, attempt))

    def run(self, **more: Any) -> list[dict[str, Any]]:
        """Run one attempt to its end and return its events."""
        self.tell(start(**more))
        return self.until_ended(more.get("trial", "AbCdE"), more.get("attempt", 1))

    def close(self) -> None:
        self.socket.close()


class LocalAgent:
    """A real agent process in an experiment folder of its own."""

    def __init__(
        self, folder: Path, socket_folder: str, *, log: Path | None = None, **environment: str
    ) -> None:
        self.folder = folder
        self.path = os.path.join(socket_folder, "a")
        self.id = "agent-1"
        self._clients: list[Client] = []
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(8)
        arguments = ["--agent", self.id, "--listen-fd", str(listener.fileno()), "--folder", str(folder)]
        # What it inherits it reads from /proc: with variables of its own it needs an interpreter of its own.
        begin: Any = subprocess.Popen if environment else Popen
        with ExitStack() as stack:
            said = (
                {}
                if log is None
                else dict.fromkeys(("stdout", "stderr"), stack.enter_context(log.open("ab")))
            )
            self.process = begin(
                [sys.executable, "-m", "pitchpipe.trial_agent", *arguments],
                pass_fds=[listener.fileno()],
                cwd=socket_folder,
                env={**os.environ, "PITCHPIPE_AGENT_TOKEN": TOKEN, **environment},
                start_new_session=True,
                **said,
            )
        listener.close()

    def connect(self, token: str = TOKEN) -> Client:
        client = Client(self.path)
        self._clients.append(client)
        client.greet(token)
        return client

    def command(self, command: str, **run: Any) -> Client:
        """Connect and configure the agent for command trials."""
        run = {"kind": "command", "command": command, "code_directory": str(self.folder), **run}
        return self.configured(run)

    def function(self, function: Callable[[dict[str, Any]], Any], **run: Any) -> Client:
        """Connect and configure the agent for trials of a pickled function."""
        (self.folder / "trial.pkl").write_bytes(pickled(function))
        return self.configured({"kind": "function", "path": "trial.pkl", **run})

    def configured(self, run: dict[str, Any]) -> Client:
        client = self.connect()
        client.tell({"op": "configure", "experiment": "exp", "folder": str(self.folder), "run": run})
        return client

    def trial_file(self, name: str, sequence_id: int = 0) -> Path:
        return self.folder / "trials" / str(sequence_id) / name

    def trial_processes(self) -> list[int]:
        """Return the processes of this agent's trials, whatever their group, session and parent."""
        within = f"\0PITCHPIPE_OUTPUT_DIR={self.folder}".encode()
        return [
            pid for pid in each_process(psutil.pids) if within in environment_of(pid) and not is_gone(pid)
        ]

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Actor:
    """An agent in this process, whose trials run in a thread."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        environment = {"PATH": "/bin", "RAY_JOB_ID": "1"}
        self.agent = Agent("agent-1", folder / "agents", environment=environment, **options)
        self.thread = threading.Thread(target=self.agent.run, daemon=True)
        self.cursor = 0

    def __enter__(self) -> "Actor":
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.agent.shutdown()
        self.thread.join(PATIENCE)
        self.agent.close()

    def configure(self, **run: Any) -> None:
        message = {"op": "configure", "experiment": "exp", "folder": str(self.folder), "run": run}
        assert self.agent.handle(message) is None

    def configure_function(self, function: Callable[[dict[str, Any]], Any], **run: Any) -> None:
        (self.folder / "trial.pkl").write_bytes(cloudpickle.dumps(function))
        self.configure(kind="function", path=str(self.folder / "trial.pkl"), **run)

    def run(self, **more: Any) -> list[dict[str, Any]]:
        self.agent.handle(start(**more))
        return self.until_ended(more.get("trial", "AbCdE"), more.get("attempt", 1))

    def until(self, done: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Return the events up to the batch with one that is `done`."""
        found: list[dict[str, Any]] = []
        while not any(map(done, found)):
            reply = self.agent.next_events(self.cursor, PATIENCE)
            assert reply["events"]
            found += reply["events"]
            self.cursor = reply["cursor"]
        return found

    def until_ended(self, trial: str = "AbCdE", attempt: int = 1) -> list[dict[str, Any]]:
        return self.until(lambda e: (e["e"], e["trial"], e["attempt"]) == ("ended", trial, attempt))


# A trial that reports and saves, as a command and as a function.
REPORTS_AND_SAVES = """
mkdir $PITCHPIPE_CHECKPOINTS/1-1 && echo weights > $PITCHPIPE_CHECKPOINTS/1-1/weights
echo '{"intermediate": 0.5}' >> $PITCHPIPE_REPORTS
echo '{"checkpoint": "1-1"}' >> $PITCHPIPE_REPORTS
echo '{"final": 0.9}' >> $PITCHPIPE_REPORTS
"""


def reports_and_saves(_parameters: dict[str, Any]) -> float:
    import pitchpipe

    pitchpipe.report_intermediate_result(0.5)
    pitchpipe.save_checkpoint({"epoch": 1})
    return 0.9


def messages(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return events as the manager receives them."""
    return MessageDecoder().feed(encode_message({"events": [encode_event(event) for event in events]}))[0][
        "events"
    ]


def read_spool(*arguments: Any, **more: Any) -> list[dict[str, Any]]:
    """Return the events in a spool as the manager receives them."""
    return messages(read_events(*arguments, **more))


def start(trial: str = "AbCdE", attempt: int = 1, parameters: Any = None, **more: Any) -> dict[str, Any]:
    record = {"parameter_id": 0, "parameter_source": "algorithm", "parameters": parameters or {}}
    return {
        "op": "start",
        "trial": trial,
        "attempt": attempt,
        "sequence_id": 0,
        "parameters": json.dumps(record),
        "first_sequence": 0,
        "gpus": None,
        **more,
    }


def wait_until(condition: Callable[[], Any], what: str = "the condition") -> None:
    """Poll for what gives no event: a file that another process writes, a process that ends."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true"
        time.sleep(0.005)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
