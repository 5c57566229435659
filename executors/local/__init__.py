"""Trials in processes on this machine, without Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .executor import LocalTrialExecutor
    from .resources import local_totals

_HOMES = {
    ".executor": "LocalTrialExecutor",
    ".resources": "local_totals",
}

__all__ = [
    "LocalTrialExecutor",
    "local_totals",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
