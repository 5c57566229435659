"""A real agent process for each test that asks for one; it is gone when the test is over."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .client import LocalAgent


@pytest.fixture(autouse=True, scope="session")
def _forked(nursery: None) -> None:
    """Fork agents; what makes a start of its own is in test_agent_process.py."""


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


@pytest.fixture
def agent_on_small_disk(tmp_path: Path, socket_folder: str) -> Iterator[LocalAgent]:
    """Make a file system of 4 MiB and 400 inodes, where that is possible, and an agent whose folder it is."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=400", "tmpfs", place]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    agent = LocalAgent(place, socket_folder)
    yield agent
    agent.stop()
    subprocess.run(["umount", "-l", place], check=True)
