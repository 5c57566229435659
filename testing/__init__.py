"""Suites for authors of tuners and assessors: what each plug-in must do, as pytest tests to inherit."""

from __future__ import annotations

from .assessor_conformance import STEPS, AssessorConformance, curve, feed
from .comparison import TASKS, Task, advantage
from .tuner_conformance import CORNER, DIFFERENT, MANY, SPACES, TunerConformance, run, value_of

__all__ = [
    "CORNER",
    "DIFFERENT",
    "MANY",
    "SPACES",
    "STEPS",
    "TASKS",
    "AssessorConformance",
    "Task",
    "TunerConformance",
    "advantage",
    "curve",
    "feed",
    "run",
    "value_of",
]
