"""The environment that trials get in a Ray worker, and the actor's order of messages, without Ray."""

import os
import socket
import sys
import threading
from dataclasses import replace

import orjson
import pytest

from pitchpipe.executors.ray.ray_agent import POLL_SECONDS, AgentSetup, RayAgent, trial_environment
from pitchpipe.executors.simulated import VirtualClock
from pitchpipe.trial_agent import Outbox, encode_message

WORKER = {"PATH": "/node", "RAY_JOB_ID": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "3"}


def setup(**options) -> AgentSetup:
    return AgentSetup(agent_id="a", token="secret", folder="/exp", **options)


def path(path: str) -> str:
    """Put the folder of the agent's own Python first."""
    return f"{os.path.dirname(sys.executable)}:{path}"


def test_trial_has_the_managers_environment_on_the_same_machine():
    environment = {"PATH": "/user", "RAY_ADDRESS": "x", "PITCHPIPE_TRIAL_ID": "outer", "OMP_NUM_THREADS": "7"}
    found = trial_environment(setup(environment=environment, omp_threads="7"), WORKER)
    assert found == {"PATH": path("/user"), "OMP_NUM_THREADS": "7"}


def test_trial_has_the_nodes_environment_elsewhere_without_rays_threads():
    assert trial_environment(setup(), WORKER) == {"PATH": path("/node"), "CUDA_VISIBLE_DEVICES": "3"}
    assert trial_environment(setup(omp_threads="4"), WORKER)["OMP_NUM_THREADS"] == "4"


def test_devices_are_rays_choice_only_for_trials_that_take_some():
    environment = {"CUDA_VISIBLE_DEVICES": "0,1"}
    without = trial_environment(setup(environment=environment), WORKER)
    assert without["CUDA_VISIBLE_DEVICES"] == "0,1"
    with_gpus = trial_environment(setup(environment=environment, has_gpus=True), WORKER)
    assert with_gpus["CUDA_VISIBLE_DEVICES"] == "3"


class Recorder:
    """Records what the agent would handle."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.idle_since = 0.0
        self.orphan_timeout = 0.05
        self.grace = 0.0
        self.has_left = threading.Event()
        self.outbox = Outbox()

    def shutdown(self) -> None:
        self.has_left.set()

    def handle(self, message, poll=None):
        self.heard.append(message["op"])
        return {"agent": "a"} if message["op"] == "hello" else None

    def next_events(self, after, timeout):
        return {"events": [{"e": "x"}], "cursor": after + 1}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1000.0)


@pytest.fixture
def agent() -> Recorder:
    return Recorder()


@pytest.fixture
def bare(agent, monkeypatch, tmp_path):
    """Replace what an actor changes and starts."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(RayAgent, "_run", lambda self: None)
    monkeypatch.setattr("pitchpipe.executors.ray.ray_agent.Agent", lambda *arguments, **options: agent)
    return AgentSetup(agent_id="a", token="secret", folder=str(tmp_path))


@pytest.fixture
def actor(bare, clock, monkeypatch):
    monkeypatch.setattr(RayAgent, "_leave_when_orphaned", lambda self: None)
    return RayAgent(bare, clock)


HELLO = {"op": "hello", "token": "secret"}


def packet(*parts) -> bytes:
    return orjson.dumps(parts)


def test_messages_are_handled_in_the_order_they_were_sent(actor, agent):
    actor.connect("s", HELLO)
    actor.tell(packet("s", 1, [{"op": "start"}]))
    assert agent.heard == []
    actor.tell(packet("s", 0, [{"op": "configure"}]))
    assert agent.heard == ["configure", "start"]


def test_message_of_an_earlier_manager_is_ignored(actor, agent):
    actor.connect("old", HELLO)
    actor.connect("new", HELLO)
    reply = actor.poll(packet("old", 0, [{"op": "kill"}], 5))
    assert orjson.loads(reply) == {"events": [], "cursor": 5}
    assert "kill" not in agent.heard
    assert orjson.loads(actor.poll(packet("new", 0, [], 5)))["cursor"] == 6


def test_call_of_an_earlier_manager_returns_when_it_is_replaced(actor):
    actor.connect("old", HELLO)
    actor.connect("new", HELLO)
    actor.until_replaced("old")  # returns


@pytest.fixture
def peer(runtime_directory):
    """Return a socket that connects to an agent's and says what is needed to be its manager."""
    peers = []

    def connect(where) -> socket.socket:
        peer = socket.socket(socket.AF_UNIX)
        peers.append(peer)
        peer.settimeout(30.0)
        peer.connect(where.socket)
        peer.sendall(encode_message(HELLO))
        assert peer.recv(1000)
        return peer

    yield connect
    for each in peers:
        each.close()


def test_socket_of_an_earlier_manager_is_closed_before_the_next_one_has_its_own(
    actor, agent, peer, runtime_directory
):
    first = actor.connect("old", HELLO, str(runtime_directory))
    old = peer(first)
    second = actor.connect("new", HELLO, str(runtime_directory))
    assert old.recv(1) == b""
    new = peer(second)
    new.sendall(encode_message({"op": "configure", "id": 1}))
    new.shutdown(socket.SHUT_WR)
    while new.recv(1000):
        pass
    assert first.socket != second.socket
    assert agent.heard == ["hello", "hello", "configure"]


def test_agent_stays_while_a_manager_holds_its_socket(actor, agent, clock, peer, runtime_directory):
    agent.orphan_timeout = 60.0
    peer(actor.connect("s", HELLO, str(runtime_directory)))
    clock.advance_to(2000.0)
    assert actor.seconds_left() == POLL_SECONDS + 60.0


@pytest.mark.parametrize("folder", ["/no/such/folder", "/tmp/" + 100 * "x", None])
def test_agent_that_cannot_make_a_socket_is_called(actor, agent, folder):
    assert actor.connect("s", HELLO, folder).socket is None
    actor.tell(packet("s", 0, [{"op": "start"}]))
    assert agent.heard == ["start"]


def test_manager_learns_where_the_agent_works(bare, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(RayAgent, "_leave_when_orphaned", lambda self: None)
    monkeypatch.setenv("PITCHPIPE_NODE_FOLDER", str(tmp_path / "node"))
    where = RayAgent(replace(bare, code_is_shipped=True), clock).connect("s", HELLO)
    assert where.folder is not None
    assert where.folder.startswith(str(tmp_path / "node"))
    assert where.code_directory == os.getcwd()


def test_wrong_token_is_refused(actor):
    with pytest.raises(PermissionError):
        actor.connect("s", {"op": "hello", "token": "guess"})


def test_agent_without_a_manager_leaves(bare, agent, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr("pitchpipe.executors.ray.ray_agent.POLL_SECONDS", 0.05)
    monkeypatch.setattr("pitchpipe.executors.ray.ray_agent.os._exit", lambda code: ended.set())
    RayAgent(bare)
    assert agent.has_left.wait(10.0)
    assert ended.wait(10.0)  # although no trial has ended


@pytest.mark.parametrize("word", ["connect", "beat", "tell", "poll"])
def test_agent_stays_as_long_after_each_call_of_a_manager_and_its_wait_for_events(actor, agent, clock, word):
    actor.connect("s", HELLO)
    agent.orphan_timeout = 60.0
    clock.advance_to(2000.0)
    assert actor.seconds_left() < 0
    if word == "connect":
        actor.connect("t", HELLO)
    elif word == "beat":
        actor.beat()
    else:
        getattr(actor, word)(packet("s", 0, [], *([0] if word == "poll" else [])))
    assert actor.seconds_left() == POLL_SECONDS + 60.0


def test_agent_whose_trial_runs_stays_no_longer_than_the_orphan_timeout(actor, agent, clock):
    agent.idle_since = None
    agent.orphan_timeout = 60.0
    clock.advance_to(1050.0)
    assert actor.seconds_left() == POLL_SECONDS + 10.0
    clock.advance_to(1065.0)
    agent.idle_since = clock()  # the trial has ended: what it left may be fetched
    assert actor.seconds_left() == 60.0
