"""Trials on a Ray cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .ray_executor import RayTrialExecutor

_HOMES = {
    ".ray_executor": "RayTrialExecutor",
}

__all__ = [
    "RayTrialExecutor",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
