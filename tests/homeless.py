"""A process without a home directory, and one whose working directory is gone."""

from __future__ import annotations

import os
import pwd
import tempfile
from typing import Any

import pytest

__all__ = ["leave_home", "lose_working_directory"]


def leave_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no HOME, and no entry in /etc/passwd."""

    def unknown(uid: int) -> Any:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


def lose_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder that is deleted."""
    gone = tempfile.mkdtemp()
    monkeypatch.chdir(gone)
    os.rmdir(gone)
