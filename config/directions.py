"""The direction of a config that does not name one: the default of its algorithms."""

from __future__ import annotations

from collections.abc import Mapping

from .models import ConfigFields

__all__ = ["default_direction"]

_LAST_RESORT = "minimize"
_VERBS = {"minimize": "minimizing", "maximize": "maximizing"}


def default_direction(config: ConfigFields, own: Mapping[str, str]) -> tuple[str, str]:
    """Return the direction and a sentence that says where it comes from.

    `own` has the defaults of the tuner's and the assessor's class, if any. The tuner's wins over the assessor's; if
    neither class has one (such as Random), lower is better.
    """
    role = next((role for role in ("tuner", "assessor") if role in own), None)
    direction = own[role] if role is not None else _LAST_RESORT
    source = (
        f"{direction} is the default of the {_name(config, role)}" if role else "no algorithm in it has one"
    )
    note = f"{_VERBS[direction]} by default: the config names no direction, and {source}"
    if own.get("assessor", direction) != direction:
        note += f"; the {_name(config, 'assessor')}, whose own default is {own['assessor']}, follows"
    return direction, note


def _name(config: ConfigFields, role: str) -> str:
    section = config.tuner if role == "tuner" else config.assessor
    return role if section is None else f"{role} {section.name or section.class_name}"
