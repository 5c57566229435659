"""From a config file to a manager, for the verbs that start an experiment."""

from __future__ import annotations

import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .failures import USAGE, Failure
from .interrupts import Interrupts

if TYPE_CHECKING:
    from ..config import ExperimentConfig
    from ..manager import Manager

__all__ = ["checked_config", "make_experiment"]


def checked_config(path: Path) -> ExperimentConfig:
    """The config, checked as a whole, with its plug-ins; what has no effect is said on stderr."""
    from ..config import load_config

    if not path.is_file():
        raise Failure(f"there is no file {path}" if not path.exists() else f"{path} is not a file", USAGE)
    config = load_config(path)
    for warning in config.warnings:
        click.echo(f"{path}: warning: {warning}", err=True)
    return config


def make_experiment(
    path: Path, experiment_id: str | None, directory: Path | None, interrupts: Interrupts
) -> Manager:
    """Check a config and make the experiment's folder and store; nothing is left behind if that fails."""
    threading.Thread(target=_import_ahead, daemon=True).start()
    config = checked_config(path)
    interrupts.hold()
    from ..manager import create_experiment

    return create_experiment(config, directory=directory, experiment_id=experiment_id, source=path)


def _import_ahead() -> None:
    """Import what running an experiment needs while the check of the plug-ins is waited for."""
    for name in ("..manager.experiments", "..executors.local", ".running"):
        import_module(name, __package__)
