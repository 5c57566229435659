"""Trials in processes on this machine, without Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .local_executor import LocalTrialExecutor
    from .local_resources import hidden_by, local_totals, names_of_gpus
else:
    __getattr__ = lazy_names(__name__, __file__)
