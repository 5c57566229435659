"""Trials in processes on this machine, without Ray."""

from __future__ import annotations

from .executor import LocalTrialExecutor
from .resources import local_totals

__all__ = [
    "LocalTrialExecutor",
    "local_totals",
]
