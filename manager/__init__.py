"""The process that runs an experiment: config, state machine, store, executors and the loop around them.

The names load when they are asked for: the command line must not pay for what a verb does not use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .config import ConfigError, ExperimentConfig, load_config
    from .executor import ExecutorError, TrialExecutor
    from .experiments import create_experiment, resume_experiment
    from .folder import ExperimentFolder, FolderError
    from .local_executor import LocalTrialExecutor
    from .manager import Manager
    from .ray_executor import RayTrialExecutor
    from .simulated_executor import SimulatedTrialExecutor
    from .store import Store, StoreError
    from .trial import Trial, TrialStatus
    from .trial_runner import TrialRunner

_HOMES = {
    "ConfigError": "config",
    "ExecutorError": "executor",
    "ExperimentConfig": "config",
    "ExperimentFolder": "folder",
    "FolderError": "folder",
    "LocalTrialExecutor": "local_executor",
    "Manager": "manager",
    "RayTrialExecutor": "ray_executor",
    "SimulatedTrialExecutor": "simulated_executor",
    "Store": "store",
    "StoreError": "store",
    "Trial": "trial",
    "TrialExecutor": "executor",
    "TrialRunner": "trial_runner",
    "TrialStatus": "trial",
    "create_experiment": "experiments",
    "load_config": "config",
    "resume_experiment": "experiments",
}

__all__ = [
    "ConfigError",
    "ExecutorError",
    "ExperimentConfig",
    "ExperimentFolder",
    "FolderError",
    "LocalTrialExecutor",
    "Manager",
    "RayTrialExecutor",
    "SimulatedTrialExecutor",
    "Store",
    "StoreError",
    "Trial",
    "TrialExecutor",
    "TrialRunner",
    "TrialStatus",
    "create_experiment",
    "load_config",
    "resume_experiment",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
