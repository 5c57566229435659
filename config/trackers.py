"""The trackers that a config names: their classes, which register under their names, and the check of their options."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from .places import Places
from .problems import ConfigError, Finding
from .root_fields import ConfigFields

__all__ = ["check_trackers", "tracker_classes"]

_GROUP = "pitchpipe.trackers"


def tracker_classes(config: ConfigFields) -> dict[str, Callable[..., Any]]:
    """Return the class of each of the `trackers`; raise `ConfigError` for those that cannot be made."""
    found, findings = _found(config)
    if findings:
        raise ConfigError(Places().problems(findings))
    return found


def check_trackers(config: ConfigFields) -> list[Finding]:
    """Return which trackers cannot be made: their library is missing or too old, or an option is unknown."""
    return _found(config)[1]


def _found(config: ConfigFields) -> tuple[dict[str, Callable[..., Any]], list[Finding]]:
    if not config.trackers:
        return {}, []
    from importlib.metadata import entry_points  # most experiments have none

    registered = entry_points(group=_GROUP)
    classes: dict[str, Callable[..., Any]] = {}
    findings: list[Finding] = []
    for name, options in config.trackers.items():
        try:
            classes[name] = registered[name].load()
            signature(classes[name]).bind(**options)
        except (ImportError, TypeError) as error:
            findings.append(Finding(path=("trackers", name), message=str(error)))
    return classes, findings
