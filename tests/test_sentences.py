"""What users read of calls in Python that make no sense: each input is a call."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

import pitchpipe

from .sentences import SentencesFile, answered


def square(parameters: dict[str, Any]) -> float:
    return parameters["x"] ** 2 + parameters["n"]


NAMES: dict[str, Any] = {
    **{
        name: getattr(pitchpipe, name) for name in ("Experiment", "Search", "maximize", "minimize", "uniform")
    },
    "SPACE": {"x": pitchpipe.uniform(-5, 5), "n": pitchpipe.randint(0, 4)},
    "GOAL": {"name": "a", "direction": "minimize"},
    "square": square,
    "nan": math.nan,
}


def of_call(line: str) -> list[str]:
    """Return the error of a call, which makes nothing."""
    with pytest.raises(Exception, match=r".") as raised:
        eval(line, NAMES)
    assert not list(Path.cwd().iterdir())
    return f"{type(raised.value).__name__}: {raised.value}".splitlines()


def test_sentences(snapshot: SnapshotAssertion) -> None:
    sections = {"calls that make no sense": of_call}
    assert answered(Path(__file__).parent, sections) == snapshot(extension_class=SentencesFile)
