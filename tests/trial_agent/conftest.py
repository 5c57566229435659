"""A real agent process for each test that asks for one; it is gone when the test is over."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .client import LocalAgent


@pytest.fixture
def socket_folder() -> Iterator[str]:
    """Return a short private path: Unix sockets allow 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="pp") as folder:
        yield folder


@pytest.fixture
def agent(tmp_path: Path, socket_folder: str) -> Iterator[LocalAgent]:
    agent = LocalAgent(tmp_path, socket_folder)
    yield agent
    agent.stop()
