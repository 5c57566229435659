"""Trials on a Ray cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .ray_executor import RayTrialExecutor
else:
    __getattr__ = lazy_names(__name__, __file__)
