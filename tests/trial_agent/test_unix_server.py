"""The local carrier: who is accepted, and what happens to events as managers come and go."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from pitchpipe.trial_agent import Agent, Report, UnixServer, core, encode_message, unix_server

from .client import TOKEN, Client, LocalAgent, is_gone, read_spool, start, wait_until


def report(sequence: int, value: str = "0") -> Report:
    return Report("AbCdE", 1, "intermediate", sequence, value, 0.0)


class Server:
    """A server in this process, for an agent that runs no trials."""

    def __init__(self, folder: Path, socket_folder: str) -> None:
        self.path = f"{socket_folder}/s"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(8)
        self.agent = Agent("agent-1", folder)
        self.server = UnixServer(self.agent, listener, TOKEN)
        self.thread = threading.Thread(target=self.server.serve, daemon=True)
        self.clients: list[Client] = []

    def connect(self, token: str | None = TOKEN) -> Client:
        client = Client(self.path)
        self.clients.append(client)
        if token is not None:
            client.greet(token)
        return client

    def put(self, *numbers: int) -> None:
        self.agent.outbox.put_all([report(number) for number in numbers])

    def close(self) -> None:
        self.server.close()
        self.thread.join(30)
        for client in self.clients:
            client.close()
        self.agent.close()


@pytest.fixture
def server(tmp_path: Path, socket_folder: str) -> Iterator[Server]:
    server = Server(tmp_path, socket_folder)
    server.thread.start()
    yield server
    server.close()


def sequences(events: list[dict[str, int]]) -> list[int]:
    return [event["sequence"] for event in events]


def is_closed(client: Client) -> bool:
    try:
        return client.socket.recv(1) == b""
    except ConnectionResetError:
        return True


def test_hello_says_who_the_agent_is(server: Server) -> None:
    client = server.connect()
    assert client.welcome["agent"] == "agent-1"
    assert client.welcome["pid"] == psutil.Process().pid
    assert (client.welcome["running"], client.welcome["seen"]) == ([], [])


@pytest.mark.parametrize("token", ["wrong", "", "öffne dich"])
def test_wrong_token_closes_the_connection(server: Server, token: str) -> None:
    with pytest.raises((EOFError, ConnectionResetError)):
        server.connect(token)


@pytest.mark.parametrize(
    "first",
    [
        encode_message({"op": "poll", "after": 0, "token": TOKEN}),
        encode_message({"op": "hello"}),
        encode_message({"op": "hello", "token": 7}),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
    ],
)
def test_anything_but_a_hello_closes_the_connection(server: Server, first: bytes) -> None:
    client = server.connect(token=None)
    client.socket.sendall(first)
    assert is_closed(client)


def test_other_users_are_not_accepted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_server, "HELLO_TIMEOUT", 600)
    monkeypatch.setattr(unix_server, "peer_uid", lambda peer: 12345)
    assert is_closed(server.connect(token=None))


def test_stranger_who_says_nothing_is_dropped_and_displaces_no_manager(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = server.connect()
    monkeypatch.setattr(unix_server, "HELLO_TIMEOUT", 0.05)
    assert is_closed(server.connect(token=None))
    server.put(1)
    assert sequences(client.poll()) == [1]


def test_strangers_beyond_a_number_are_turned_away(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_server, "MAX_STRANGERS", 1)
    first, second = server.connect(token=None), server.connect(token=None)
    assert is_closed(second)
    first.greet(TOKEN)


def test_waiting_poll_gets_a_reply_when_something_happens(server: Server) -> None:
    client = server.connect()
    client.tell({"op": "poll", "after": 0, "id": "p"})
    assert client.ask({"op": "hello", "id": 2})["id"] == 2  # the poll waits, others do not
    server.put(1, 2)
    reply = client.receive()
    assert (sequences(reply["events"]), reply["cursor"], reply["id"]) == ([1, 2], 2, "p")


def test_invalid_message_gets_an_error_and_the_agent_continues(server: Server) -> None:
    client = server.connect()
    for message in [
        {"op": "dance"},
        {},
        {"op": "poll"},
        {"op": "poll", "after": "x"},
        {"op": "start", "trial": "a"},
        {"op": "configure", "experiment": "e", "folder": "/", "run": {"kind": "magic"}},
        {"op": "configure"},
        {"op": "kill"},
        {"op": "read_file", "path": "x", "offset": 0, "limit": 1},
    ]:
        assert "error" in client.ask(message), message
    assert client.ask({"op": "hello"})["agent"] == "agent-1"


def test_events_are_kept_until_acknowledged_and_come_again_to_the_next_manager(server: Server) -> None:
    server.put(1, 2)
    first = server.connect()
    assert sequences(first.poll()) == [1, 2]
    server.put(3)
    assert sequences(first.poll()) == [3]  # acknowledges 1 and 2
    first.close()
    second = server.connect()
    assert sequences(second.poll()) == [3]
    assert second.cursor == 3


def test_new_manager_takes_over_from_the_old_one(server: Server) -> None:
    old = server.connect()
    old.tell({"op": "poll", "after": 0})
    new = server.connect()
    assert is_closed(old)
    server.put(1)
    assert sequences(new.poll()) == [1]


def hello(session: str) -> dict[str, str]:
    return {"op": "hello", "token": TOKEN, "experiment": "exp", "session": session}


def test_manager_whose_connection_broke_continues_its_session_unless_another_one_took_over(
    server: Server,
) -> None:
    for session in ("a", "a", "b", "b"):
        assert server.connect(None).ask(hello(session))["agent"] == "agent-1"
    late = server.connect(None)
    assert late.ask({**hello("a"), "id": 7}) == {"replaced": True, "id": 7}
    assert is_closed(late)
    assert server.server.has_manager


def test_every_event_comes_exactly_once_over_many_lines_that_break(server: Server) -> None:
    """Check a manager that commits a batch, acknowledges it with its next poll, and dies at any point between."""
    random = Random(1)
    put, cursor = 0, 0
    got: list[int] = []
    while put < 300 or len(got) < put:
        if put < 300:
            server.put(*range(put, put + 3))
            put += 3
        client = server.connect()
        client.cursor = cursor
        for _ in range(random.randrange(3)):
            if len(got) == put:
                break
            events = client.poll()
            if random.random() < 0.3:  # it dies before it has committed
                break
            got += sequences(events)
            cursor = client.cursor
        client.tell({"op": "poll", "after": cursor})  # the reply is never read
        client.close()
    assert got == list(range(put))


def test_held_events_of_a_running_function_leave_after_the_hold(server: Server) -> None:
    client = server.connect()
    client.tell({"op": "poll", "after": 0})
    assert client.ask({"op": "hello"})["agent"] == "agent-1"
    server.agent.outbox.hold(0.05)
    server.agent.outbox.put(report(0), urgent=False)
    client.tell({"op": "hello"})  # what a start would do: it makes the server look at the clock
    replies = [client.receive(), client.receive()]
    assert sequences(replies[1]["events"]) == [0]


def test_manager_that_takes_no_bytes_is_given_up(
    tmp_path: Path, socket_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unix_server, "SEND_TIMEOUT", 1)
    server = Server(tmp_path, socket_folder)
    server.thread.start()
    frozen = server.connect()
    server.agent.outbox.put_all([report(0, "x" * 4_000_000)])
    frozen.tell({"op": "poll", "after": 0})
    time_before = time.monotonic()
    while server.agent.outbox.on_events is not None and server.server.has_manager:
        assert time.monotonic() < time_before + 30
        time.sleep(0.01)
    server.connect()
    server.close()


def test_agent_that_is_never_configured_leaves_after_a_while(
    tmp_path: Path, socket_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "IDLE_TIMEOUT", 0.05)
    server = Server(tmp_path, socket_folder)
    server.thread.start()
    server.agent.run()  # returns when the server has shut it down
    server.thread.join(30)
    assert not server.thread.is_alive()
    server.close()


def test_idle_agent_leaves_soon_after_its_manager(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    client = server.connect()
    monkeypatch.setattr(unix_server, "IDLE_ORPHAN_TIMEOUT", 0.0)
    run = {"kind": "command", "orphan_timeout": 600.0}
    client.tell({"op": "configure", "experiment": "e", "folder": "/", "run": run})
    for _ in range(3):  # it stays while its manager is there
        assert client.ask({"op": "hello"})["running"] == []
    client.close()
    server.thread.join(30)
    assert not server.thread.is_alive()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_agent_even_if_no_handler_runs(server: Server, number: signal.Signals) -> None:
    client = server.connect()
    os.write(server.server.wakeup_descriptor, bytes([signal.SIGUSR1]))  # a user's signal, to be ignored
    client.ask({"op": "hello"})
    client.tell({"op": "configure", "experiment": "e", "folder": "/", "run": {"kind": "command"}})
    assert "JSON text" in client.ask({**start(), "parameters": {}})["error"]  # still taking trials
    os.write(server.server.wakeup_descriptor, bytes([number]))
    server.agent.run()  # returns


def test_orphan_finishes_its_trial_then_leaves(agent: LocalAgent) -> None:
    command = "while [ ! -e go ]; do sleep 0.02; done; echo '{\"final\": 1}' >> $PITCHPIPE_REPORTS"
    client = agent.command(command, orphan_timeout=2.0)
    client.tell(start())
    client.poll()
    (agent.folder / "go").touch()
    client.close()
    assert agent.process.wait(30) == 0
    lines = agent.trial_file("reports-1.jsonl").read_text().splitlines()
    assert '"exit_code":0' in lines[-1]


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda agent, client: client.close(), id="orphan"),
        pytest.param(lambda agent, client: client.tell({"op": "shutdown"}), id="message"),
        pytest.param(lambda agent, client: agent.process.terminate(), id="signal"),
    ],
)
def test_agent_that_leaves_ends_its_command_and_all_its_processes(
    agent: LocalAgent, leave: Callable[[LocalAgent, Client], None]
) -> None:
    client = agent.command("sleep 600 & sleep 600", orphan_timeout=0.2)
    client.tell(start())
    pid = client.poll()[0]["pid"]
    children = psutil.Process(agent.process.pid).children(recursive=True)
    leave(agent, client)
    assert agent.process.wait(30) == 0
    assert [child for child in (pid, *(child.pid for child in children)) if not is_gone(child)] == []
    assert agent.trial_processes() == []
    assert read_spool(agent.trial_file("reports-1.jsonl"), "AbCdE", 1)[-1]["killed"]


@pytest.mark.parametrize(
    ("reports", "killed", "run"),
    [
        (True, False, {"orphan_timeout": 0.2}),
        (False, False, {"orphan_timeout": 0.2}),
        (False, True, {"orphan_timeout": 600.0, "grace": 0.2}),
    ],
)
def test_orphan_ends_a_function_that_does_not_end_by_itself(
    agent: LocalAgent, reports: bool, killed: bool, run: dict[str, float]
) -> None:
    def run_for_ever(parameters: dict[str, Any]) -> None:
        from pitchpipe import report_intermediate_result

        while True:
            time.sleep(0) if not parameters["reports"] else report_intermediate_result(1)

    client = agent.function(run_for_ever, **run)
    client.tell(start(parameters={"reports": reports}))
    client.poll()
    if killed:
        client.tell({"op": "kill", "trial": "AbCdE", "attempt": 1})
        client.settle()
    client.close()
    assert agent.process.wait(30) == 0
    lines = (agent.folder / "agents" / "agent-1.jsonl").read_text().splitlines()
    assert '"killed":true' in lines[-1]


@pytest.mark.slow
def test_orphan_whose_function_cannot_be_interrupted_ends_all_the_same(agent: LocalAgent) -> None:
    def stuck(parameters: dict[str, Any]) -> None:
        signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGTERM}
        )  # another thread gets it, and sleep continues
        time.sleep(600)

    client = agent.function(stuck, orphan_timeout=0.2, grace=0.0)
    client.tell(start())
    client.poll()
    client.close()
    assert agent.process.wait(30) == 1


def test_next_manager_finds_what_runs_and_what_was_reported_meanwhile(agent: LocalAgent) -> None:
    command = "while [ ! -e go ]; do sleep 0.02; done; echo '{\"final\": 1}' >> $PITCHPIPE_REPORTS; sleep 600"
    first = agent.command(command)
    first.tell(start(), start(trial="next"))
    pid = first.poll()[0]["pid"]
    first.close()
    (agent.folder / "go").touch()
    wait_until(lambda: "final" in agent.trial_file("reports-1.jsonl").read_text())
    second = agent.connect()
    assert second.welcome["running"] == [
        {"trial": "AbCdE", "attempt": 1, "pid": pid},
        {"trial": "next", "attempt": 1, "pid": None},
    ]
    assert second.welcome["seen"] == [["AbCdE", 1], ["next", 1]]
    second.cursor = 1
    events = second.events_until(lambda event: event["e"] == "report")
    assert [event["value"] for event in events] == ["1"]
    second.tell({"op": "kill", "trial": "AbCdE", "attempt": 1})
    assert second.until_ended()[-1]["killed"]


def test_connection_whose_number_belongs_to_another_socket_sends_nothing_there() -> None:
    (ours, theirs), (mine, yours) = socket.socketpair(), socket.socketpair()
    with ours, theirs, mine, yours:
        connection = unix_server.Connection(ours)
        os.dup2(mine.fileno(), ours.fileno())
        connection.send({"pong": "agent-1"})
        yours.setblocking(False)
        with pytest.raises(BlockingIOError):
            yours.recv(1)
