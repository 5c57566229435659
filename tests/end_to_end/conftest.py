"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """Make a place for experiments of this machine."""
    return Lab(tmp_path / "lab")
