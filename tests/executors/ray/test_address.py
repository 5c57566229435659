"""Which cluster "auto" means; addresses that are refused are among the sentences of this room."""

from __future__ import annotations

import asyncio
import socket

import pytest

from pitchpipe.executors.ray.join import find_cluster

OTHER = "10.0.0.1:1"


@pytest.mark.parametrize(
    ("named", "recorded", "running"),
    [("HERE", OTHER, {OTHER}), ("", "HERE", {"HERE", OTHER}), ("local", OTHER, {"HERE"})],
)
def test_auto_is_the_cluster_that_is_named_or_recorded_or_the_only_one(
    named: str, recorded: str, running: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        found = {address.replace("HERE", here) for address in running}
        monkeypatch.setenv("RAY_ADDRESS", named.replace("HERE", here))
        monkeypatch.setattr("ray._private.utils.read_ray_address", lambda _: recorded.replace("HERE", here))
        monkeypatch.setattr("pitchpipe.executors.ray.join._running_here", lambda: found)
        assert asyncio.run(find_cluster("auto")) == here
