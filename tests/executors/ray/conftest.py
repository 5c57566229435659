"""What most tests with Ray need."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..bench import Bench


@pytest.fixture
def own_bench(tmp_path: Path) -> Bench:
    """Make a bench for sessions on a Ray of the test's own, or on a cluster."""
    return Bench("ray", tmp_path / "exp")


@pytest.fixture
def bench(shared_ray: Path, tmp_path: Path) -> Bench:
    """Make a bench for sessions on the shared Ray."""
    return Bench("ray", tmp_path / "exp")
