"""The stored configuration of an experiment, and the objectives in it."""

from __future__ import annotations

from typing import Any

from ...protocol import Objective, main_objective, objectives_of
from ..errors import empty, understood
from .database import Database
from .json_values import parsed
from .read_model import Goal

__all__ = ["main_name", "read_config", "read_goals", "read_objectives", "read_repeats"]


def read_config(db: Database) -> dict[str, Any]:
    """Return the stored configuration; raise `StoreError` if there is none."""
    row = db.row("SELECT config FROM experiment")
    if row is None:
        raise empty(db.path)
    with understood(db.path, "config"):
        found = parsed(row[0])
        if not isinstance(found, dict):
            raise TypeError("not an object")
        return found


def read_objectives(db: Database) -> tuple[Objective, ...]:
    """Return what is optimised and what is limited."""
    if db.objectives is None:
        found = read_config(db).get("objectives") or [{"direction": "minimize"}]
        with understood(db.path, "objectives"):
            objectives = objectives_of(found)
            for one in objectives:
                if one.direction not in ("minimize", "maximize", None):
                    raise ValueError(f"the direction {one.direction!r}")
            if all(one.direction is None for one in objectives):
                raise KeyError("direction")
        db.objectives = objectives
    return db.objectives


def read_goals(db: Database) -> list[Goal]:
    """Return what is optimised; the first one is what `best` goes by where there is one."""
    return [Goal(one.name, one.direction) for one in read_objectives(db) if one.direction is not None]


def read_repeats(db: Database) -> int:
    """Return how often each configuration is run."""
    if db.repeats is None:
        found = read_config(db).get("repeats") or {}
        with understood(db.path, "repeats"):
            db.repeats = int(found.get("count", 1))
    return db.repeats


def main_name(db: Database) -> str:
    """Return the name of the objective that `default`, `value` and `last` mean."""
    return main_objective(read_objectives(db)).name
