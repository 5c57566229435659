"""From a config file to a manager, for the verbs that start an experiment."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .failures import FAILED, Failure
from .interrupts import Interrupts

if TYPE_CHECKING:
    from ..config import ExperimentConfig
    from ..manager import Manager

__all__ = ["check_startable", "checked_config", "make_experiment"]


def checked_config(path: Path) -> ExperimentConfig:
    """Return the checked config, its plug-ins included; print settings without effect on stderr."""
    from ..config import load_config

    if not path.is_file():
        raise Failure(f"there is no file {path}" if not path.exists() else f"{path} is not a file")
    config = load_config(path)
    for warning in config.warnings:
        click.echo(f"{path}: warning: {warning}", err=True)
    return config


def check_startable(config: ExperimentConfig) -> None:
    """Check, as the executor and the agent do, that this machine can start a trial; raise `Failure` if not.

    Nothing is checked for a Ray cluster, whose nodes may differ from this machine.
    """
    from ..executors import ExecutorError
    from ..manager import check_resources
    from ..trial_agent import StartError, arguments_of, base_environment, filled

    if config.training_service.platform != "local":
        return
    problems = []
    try:
        check_resources(config)
    except ExecutorError as error:
        problems.append(str(error))
    try:
        environment = base_environment(os.environ) | config.trial_environment
        command = filled(config.trial_command or "", dict.fromkeys(config.search_space or (), 0))
        arguments_of(command, str(config.trial_code_directory), environment)
    except StartError as error:
        problems.append(str(error))
    if problems:
        raise Failure("; ".join(problems), FAILED)


def make_experiment(
    path: Path, experiment_id: str | None, directory: Path | None, interrupts: Interrupts
) -> Manager:
    """Check a config and make the experiment's folder and store; if that fails, nothing remains."""
    threading.Thread(target=_import_ahead, daemon=True).start()
    config = checked_config(path)
    interrupts.hold()
    from ..manager import create_experiment

    return create_experiment(config, directory=directory, experiment_id=experiment_id, source=path)


def _import_ahead() -> None:
    """Import what running an experiment needs while the plug-ins are checked."""
    for name in ("..manager.experiments", "..executors.local", ".running"):
        import_module(name, __package__)
