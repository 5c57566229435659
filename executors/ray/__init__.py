"""Trials on a Ray cluster."""

from .executor import RayTrialExecutor

__all__ = [
    "RayTrialExecutor",
]
