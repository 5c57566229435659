"""Experiments to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .made_stores import MadeExperiment


@pytest.fixture
def made(tmp_path: Path) -> Iterator[MadeExperiment]:
    experiment = MadeExperiment(tmp_path / "exps" / "made1234")
    yield experiment
    experiment.store.close()
