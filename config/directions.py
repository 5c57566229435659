"""The direction of a config that does not name one: the default of its algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .objectives import ObjectiveConfig
from .root_fields import ConfigFields

__all__ = ["default_direction", "objectives_text"]

_TO_MINIMIZE = "for the lowest: objectives: [{direction: minimize}]"
_VERBS = {"minimize": "minimizing", "maximize": "maximizing"}


def default_direction(config: ConfigFields, own: Mapping[str, str], *, is_nnis: bool) -> tuple[str, str]:
    """Return the direction and a sentence that says where it comes from.

    `own` has the defaults of the tuner's and the assessor's class, if any. The tuner's wins over the assessor's; if
    neither class has one (such as Random), lower is better, but in NNI's form higher, as on NNI's pages.
    """
    role = next((role for role in ("tuner", "assessor") if role in own), None)
    if role is not None:
        direction, source = own[role], f"{own[role]} is the default of the {_name(config, role)}"
    elif is_nnis:
        direction, source = "maximize", f"NNI ranks the highest result first ({_TO_MINIMIZE})"
    else:
        direction, source = "minimize", "no algorithm has one"
    note = f"{_VERBS[direction]} default: no direction is given, and {source}"
    if own.get("assessor", direction) != direction:
        note += f"; the {_name(config, 'assessor')}, whose own default is {own['assessor']}, follows"
    return direction, note


def objectives_text(objectives: Sequence[ObjectiveConfig]) -> str:
    """Return what is optimised, and what limits it.

    >>> given = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "constraint": "<= 20"}]
    >>> objectives_text([ObjectiveConfig(**one) for one in given])
    'minimizing loss, limit ms <= 20'
    """
    goals = [f"{_VERBS[one.direction]} {one.name}" for one in objectives if one.direction is not None]
    return ", ".join(
        [*goals, *(f"limit {one.name} {one.constraint}" for one in objectives if one.constraint is not None)]
    )


def _name(config: ConfigFields, role: str) -> str:
    section = config.tuner if role == "tuner" else config.assessor
    return role if section is None else f"{role} {section.name or section.class_name}"
