"""The experiments that the tests of the server look at, too; connections, and a disk that is soon full."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..server.conftest import made

__all__ = ["made"]


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Return the connections that are opened from now on: some settings hold for one connection only."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def remember(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", remember)
    return opened


@pytest.fixture
def medium(tmp_path: Path) -> Iterator[Path]:
    """Make a file system of 3 MiB, where that is possible."""
    place = tmp_path / "medium"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)
