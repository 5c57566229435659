"""The trackers that a config names: made of the adapters, and checked by making them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from .models import ConfigFields
from .places import Places
from .problems import ConfigError, Finding

__all__ = ["check_trackers", "trackers_of"]

_CLASSES = {"mlflow": "MLflowCallback", "tensorboard": "TensorBoardCallback", "wandb": "WandbCallback"}


def trackers_of(config: ConfigFields) -> list[Any]:
    """Return the callbacks for the `trackers`; raise `ConfigError` for those that cannot be made."""
    if findings := check_trackers(config):
        raise ConfigError(Places().problems(findings))
    return [_made(name, options) for name, options in config.trackers.items()]


def check_trackers(config: ConfigFields) -> list[Finding]:
    """Return which trackers cannot be made: their library is missing or too old, or an option is unknown."""
    findings: list[Finding] = []
    for name, options in config.trackers.items():
        try:
            _made(name, options)
        except (ImportError, TypeError) as error:
            findings.append(Finding(path=("trackers", name), message=str(error)))
    return findings


def _made(name: str, options: Mapping[str, Any]) -> Any:
    # By its name, like a plug-in: the adapters are built on the manager, not beneath it.
    adapter = import_module(f"..integrations.{name}", __package__)
    return getattr(adapter, _CLASSES[name])(**options)
