"""The process that runs an experiment: the loop, the link to the dispatcher, control from outside, hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .experiments import create_experiment, experiment_config, resume_experiment
    from .manager import Manager
    from .settings import objectives_of, run_of

_HOMES = {
    "Manager": ".manager",
    "create_experiment": ".experiments",
    "experiment_config": ".experiments",
    "objectives_of": ".settings",
    "resume_experiment": ".experiments",
    "run_of": ".settings",
}

__all__ = [
    "Manager",
    "create_experiment",
    "experiment_config",
    "objectives_of",
    "resume_experiment",
    "run_of",
]


if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name], __name__), name)
