"""Addresses that cannot be joined are refused in words, without Ray's ten minutes of trying."""

import asyncio
import re
import socket
import threading

import pytest

from pitchpipe.executors.base import ExecutorError
from pitchpipe.executors.daemon_thread import in_daemon_thread
from pitchpipe.executors.ray.join import _why_not_joined, join


def refused(address: str) -> str:
    with pytest.raises(ExecutorError) as caught:
        asyncio.run(join(address, "exp"))
    return str(caught.value)


def test_address_where_nothing_listens():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        assert refused(address) == f"no Ray cluster answers at {address} (connection refused)"


@pytest.mark.parametrize("address", ["here", "host:port", ":6379"])
def test_what_is_no_address(address):
    assert "give host:port, or auto" in refused(address)


def test_ray_client_address():
    assert "give host:port of the head" in refused("ray://head:10001")


@pytest.mark.parametrize(
    ("running", "refusal"),
    [
        (set(), "no Ray cluster runs on this machine: start one with `ray start --head`"),
        ({"10.0.0.1:1", "10.0.0.2:2"}, r"several Ray clusters .* \(10.0.0.1:1, 10.0.0.2:2\): give"),
    ],
)
def test_auto_without_one_cluster_to_mean(monkeypatch, running, refusal):
    monkeypatch.setattr("pitchpipe.executors.ray.address._running_here", lambda: running)
    assert re.match(refusal, refused("auto"))


def test_auto_is_what_the_environment_names(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "host-without-port")
    assert "'host-without-port' is not the address" in refused("auto")


def test_refused_token_is_said_in_words():
    error = ConnectionError("Failed to connect")
    error.__cause__ = RuntimeError("AuthenticationError: InvalidAuthToken")
    assert "refuses our token" in _why_not_joined("head:1", error)


def test_error_in_a_daemon_thread_reaches_whoever_waits():
    def fail() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        asyncio.run(in_daemon_thread(fail))


def test_thread_stays_when_it_is_asked_to():
    async def check(stay: bool) -> bool:
        thread = await in_daemon_thread(threading.current_thread, stay=stay)
        thread.join(0.1 if stay else 30.0)
        return thread.is_alive()

    assert asyncio.run(check(stay=True))
    assert not asyncio.run(check(stay=False))
