"""Which cluster an address means; one that cannot be joined is refused in words, without minutes of trying."""

from __future__ import annotations

import asyncio
import re
import socket
from types import SimpleNamespace

import psutil
import pytest

from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.ray.address import find_cluster


def refused(address: str) -> str:
    with pytest.raises(ExecutorError) as caught:
        asyncio.run(find_cluster(address))
    return str(caught.value)


def test_address_where_nothing_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        assert refused(address) == f"no Ray cluster answers at {address} (connection refused)"


@pytest.mark.parametrize("address", ["here", "host:port", ":6379"])
def test_word_that_is_not_an_address(address: str) -> None:
    assert "give host:port, or auto" in refused(address)


def test_ray_client_address() -> None:
    assert "give host:port of the head" in refused("ray://head:10001")


def raylet(address: str, folder: str = "/tmp/ray") -> SimpleNamespace:
    command = ["raylet", f"--gcs-address={address}", f"--session_dir={folder}/session"]
    return SimpleNamespace(name=lambda: "raylet", cmdline=lambda: command)


@pytest.mark.parametrize(
    ("running", "refusal"),
    [
        ([], "no Ray cluster runs on this machine: start one with `ray start --head`"),
        ([raylet("10.0.0.1:1", "/tmp/pitchpipe-ray-1f")], "no Ray cluster runs on this machine"),
        (
            [raylet("10.0.0.2:2"), raylet("10.0.0.1:1"), raylet("10.0.0.1:1")],
            r"several Ray clusters .* \(10.0.0.1:1, 10.0.0.2:2\): give",
        ),
    ],
)
def test_auto_without_one_cluster_to_mean(
    monkeypatch: pytest.MonkeyPatch, running: list[SimpleNamespace], refusal: str
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(psutil, "process_iter", lambda: running)
    assert re.match(refusal, refused("auto"))


def test_auto_is_what_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "host-without-port")
    assert "'host-without-port' is not the address" in refused("auto")
