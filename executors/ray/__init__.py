"""Trials on a Ray cluster."""

from __future__ import annotations

from .executor import RayTrialExecutor

__all__ = [
    "RayTrialExecutor",
]
