"""Assessors by name, and what is wrong with their arguments."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import pitchpipe.assessors as assessors
from pitchpipe.assessors import registry


@pytest.mark.parametrize("name", ["Medianstop", "medianstop", "MEDIANSTOP"])
def test_names_in_any_spelling(name: str) -> None:
    assert isinstance(assessors.create(name, optimize_mode="minimize"), assessors.MedianstopAssessor)


def test_an_unknown_name_shows_the_nearest_and_all() -> None:
    with pytest.raises(
        assessors.UnknownAlgorithm, match=r"did you mean Medianstop\? \(known: ASHA, .*Medianstop"
    ):
        assessors.create("median_stop")


def test_an_unknown_argument_shows_the_nearest() -> None:
    with pytest.raises(TypeError, match="unknown argument 'optimise_mode'; did you mean 'optimize_mode'"):
        assessors.create("Medianstop", optimise_mode="maximize")


def test_entry_points_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("Mine", "pitchpipe.assessors.medianstop:MedianstopAssessor", registry.REGISTRY.group)
    monkeypatch.setattr(registry.REGISTRY, "entry_points", lambda: {"Mine": entry})
    assert assessors.find("mine") is assessors.MedianstopAssessor
    assert assessors.names() == sorted([*registry.REGISTRY.built_in, "Mine"], key=str.lower)


def test_every_name_of_the_table_loads() -> None:
    assert all(issubclass(assessors.find(name), assessors.Assessor) for name in registry.REGISTRY.built_in)


def test_the_package_imports_no_numpy() -> None:
    code = "import sys, pitchpipe.assessors; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0
