"""A page of the table of families, in the orders that the table of trials has.

The means of families are not in the database, so that Python puts them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from .best_trials import read_front
from .database import Database
from .families import read_families
from .field_sql import QueryError
from .json_values import flat
from .metrics import read_family_metrics
from .read_model import FamilyRow, TrialRow
from .trial_query import TrialQuery
from .trial_rows import TrialPage

_ATTRIBUTES = {one.name for one in fields(TrialRow)} - {"values", "parameters", "final"}


def read_family_page(db: Database, query: TrialQuery) -> TrialPage:
    """Return the families with the statuses of a query, in its order; those without a value come last in every order.

    Raise `QueryError` for conditions and for an order that families do not have.
    """
    if query.conditions or query.search:
        raise QueryError("a table of families has no conditions: a value of theirs is that of several trials")
    families = read_families(db)
    matching = [family for family in families if not query.statuses or family.status in query.statuses]
    ordered = _by_rank(db, matching) if query.sort == "best" else _by_field(db, matching, query)
    end = None if query.limit is None else query.offset + query.limit
    return TrialPage([*ordered[query.offset : end]], len(matching))


def _by_field(db: Database, families: Sequence[FamilyRow], query: TrialQuery) -> list[FamilyRow]:
    value_of = _values(db, families, query.sort)
    keys = {family.sequence_id: _key(value_of(family)) for family in families}
    known = [family for family in families if keys[family.sequence_id] is not None]
    known.sort(key=lambda family: keys[family.sequence_id] or (0, 0), reverse=query.descending)
    return [*known, *(family for family in families if keys[family.sequence_id] is None)]


def _values(db: Database, families: Sequence[FamilyRow], field: str) -> Callable[[FamilyRow], Any]:
    """Return a function that returns the value of a family in a field."""
    head, _, name = field.partition(".")
    if head == "value":
        name = db.main_objective() if name in ("", "default") else name
        return lambda family: family.values.get(name)
    if head == "parameters" and name:
        names = (f"{name}._name", name)  # a nested choice is written by its name
        flattened = {family.sequence_id: flat(family.parameters) for family in families}

        def parameter_of(family: FamilyRow) -> Any:
            found = flattened[family.sequence_id]
            return next((found[one] for one in names if one in found), None)

        return parameter_of
    if head in ("metrics", "final") and name:
        metrics = read_family_metrics(db, families, [name])
        return lambda family: metrics[family.sequence_id].get(name)
    if field not in _ATTRIBUTES:
        raise QueryError(
            f"families have no {field}: sort them by a result, a parameter, a metric or duration"
        )
    return lambda family: getattr(family, field)


def _key(value: Any) -> tuple[int, Any] | None:
    """Return what a value is sorted by, numbers before texts; None for a missing one."""
    if value is None or value != value:
        return None
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def _by_rank(db: Database, families: Sequence[FamilyRow]) -> list[FamilyRow]:
    """Return families in the order `best`, which SQL has for trials.

    Families that keep the limits come first: the front, then those with all their repeats, since other means are less
    certain, each by the first objective. Those that violate the limits follow, the closest to the limits first.
    """
    front, objectives = read_front(db), db.objectives()
    goal = next(one for one in objectives if one.direction is not None)
    places = {number: place for place, number in enumerate(front.infeasible, start=1)}

    def rank(family: FamilyRow) -> tuple[bool, int, bool, bool, float]:
        number, value = family.sequence_id, family.values.get(goal.name)
        # A family that the end of the experiment cut off has no place among those that violate the limits.
        is_beyond = any(
            one.violation(family.values[one.name]) for one in objectives if one.name in family.values
        )
        excess = places.get(number, len(places) + 1) if is_beyond else 0
        is_behind, is_cut = number not in front.trials, family.family_end != "complete"
        return value is None, excess, is_behind, is_cut, 0.0 if value is None else goal.sign * value

    return sorted(families, key=rank)
