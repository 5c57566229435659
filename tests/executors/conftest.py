"""The bench of tests that are repeated with several kinds of executors; see `bench.on`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .bench import Bench
from .ray_support import forbid_sockets


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Make a bench for sessions of the test's own."""
    kind, _, way = request.param.partition(", ")
    if way == "called":
        forbid_sockets(monkeypatch, tmp_path)
    if kind == "ray":
        request.getfixturevalue("shared_ray")
    if request.param == "local":
        request.getfixturevalue("forked_agents")
    return Bench(kind, tmp_path / "exp")
