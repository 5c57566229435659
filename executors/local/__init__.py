"""Trials in processes on this machine, without Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .gpus import hidden_by, names_of_gpus
    from .local_executor import LocalTrialExecutor
    from .resources import local_totals

_HOMES = {
    ".local_executor": "LocalTrialExecutor",
    ".gpus": "hidden_by names_of_gpus",
    ".resources": "local_totals",
}

__all__ = [
    "LocalTrialExecutor",
    "hidden_by",
    "local_totals",
    "names_of_gpus",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
