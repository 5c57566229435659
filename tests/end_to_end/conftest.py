"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def _running() -> Any:
    """Import the helpers beside this file: in importlib mode pytest does not put them on the path."""
    name = "pitchpipe_end_to_end_running"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("running.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    """Make a place for experiments of this machine."""
    return _running().Lab(tmp_path / "lab")


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.ray)])
def any_lab(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Make a place for experiments, on this machine and on the shared Ray."""
    if request.param == "ray":
        request.getfixturevalue("shared_ray")
    return _running().Lab(tmp_path / "lab", request.param)
