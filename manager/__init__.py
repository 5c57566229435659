"""The process that runs an experiment: the loop, the link to the dispatcher, control from outside, hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..trial_agent import lazy_names

if TYPE_CHECKING:
    from .experiments import (
        check_resources,
        create_experiment,
        experiment_config,
        resume_experiment,
        warm_start_notes,
    )
    from .manager import Manager
    from .settings import run_of

_HOMES = {
    ".experiments": "check_resources create_experiment experiment_config resume_experiment warm_start_notes",
    ".manager": "Manager",
    ".settings": "run_of",
}

__all__ = [
    "Manager",
    "check_resources",
    "create_experiment",
    "experiment_config",
    "resume_experiment",
    "run_of",
    "warm_start_notes",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
