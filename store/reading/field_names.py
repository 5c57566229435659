"""The names that users have for the fields of trials: the headings of columns, as they stand in tables.

A name means a column (`status`, or its heading `Took`), an objective, a parameter or a metric, in this order. A metric
whose name is taken, or cannot stand in a condition as it is, has the heading `metrics.NAME` or `metrics["NAME"]`, so
that each heading is a name for its column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType

from ...protocol import Objective
from .database import Database
from .field_sql import FIELDS, JSON_HEADS, QueryError, check_quotes, is_field
from .json_values import flat
from .metrics import Metric, read_metric_names
from .trial_columns import COLUMNS, TrialTable
from .trial_query import MARKS, ORDERED, Condition, TrialQuery, plain_field, spelled_field
from .trial_rows import read_trials

ORDERS = ("number", "best", "highest", "lowest", "longest", "latest")
"""The words for orders; they are not names of fields."""
_FIELDS_OF: Mapping[str, str] = MappingProxyType({"values": "value"})
# By the headings of columns, in small letters.
_HEADINGS: Mapping[str, str] = MappingProxyType(
    {
        head.lower(): _FIELDS_OF.get(column.name, column.name)
        for column in COLUMNS
        for head in (column.head, column.short)
        if head and (TrialTable.WHERE in column.tables or column.name in ("values", "last"))
    }
    | {"#": "sequence_id"}
)
_NOUNS: Mapping[str, str] = MappingProxyType(
    {"value": "metric", "parameters": "parameter", "metrics": "metric", "final": "metric"}
)
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldNames:
    """The names of an experiment: its objectives (and limited metrics), its metrics, the outer names of parameters."""

    objectives: tuple[str, ...]
    parameters: frozenset[str]
    metrics: tuple[Metric, ...]
    marks: tuple[str, ...] = ()

    @classmethod
    def read(cls, db: Database) -> FieldNames:
        """Read the names; those of parameters are in the search space and in the first trials."""
        shown = read_trials(db, TrialQuery()).trials
        parameters = {_outer(name) for trial in shown for name in flat(trial.parameters)}
        space = db.config().get("searchSpace")
        return cls(
            objectives=tuple(one.name for one in db.objectives()),
            parameters=frozenset(parameters | set(space if isinstance(space, Mapping) else ())),
            metrics=read_metric_names(db),
            marks=marks_of(db.objectives()),
        )

    @property
    def beside(self) -> list[Metric]:
        """The metrics that are not objectives."""
        return [one for one in self.metrics if one.name not in (*self.objectives, "default")]

    def field(self, name: str) -> str | None:
        """Return the field that a name means, None for an unknown name; raise `QueryError` if it means two.

        >>> names = FieldNames(objectives=("acc",), parameters=frozenset(["lr"]), metrics=(Metric("loss", True),))
        >>> [names.field(name) for name in ("acc", "lr", "loss", "Took", "value.acc", "los")]
        ['value.acc', 'parameters.lr', 'metrics.loss', 'duration', 'value.acc', None]
        """
        check_quotes(name)
        if is_field(name) or name.lower() in _HEADINGS:
            return name if is_field(name) else _HEADINGS[name.lower()]
        is_objective, is_parameter = name in self.objectives, _outer(name) in self.parameters
        if is_objective and is_parameter:
            raise QueryError(
                f"'{name}' is an objective and a parameter: write value.{name} or parameters.{name}"
            )
        if is_objective or is_parameter:
            return f"{'value' if is_objective else 'parameters'}.{name}"
        if any(one.name == name for one in self.metrics):
            return f"metrics.{name}"
        return name if name in self.marks else None

    def heading(self, metric: str) -> str:
        """Return the heading of a metric's column, which is its name in conditions and orders as well.

        >>> names = FieldNames(objectives=("acc",), parameters=frozenset(["lr"]), metrics=())
        >>> [names.heading(name) for name in ("train_loss", "lr", "status", "a=b")]
        ['train_loss', 'metrics.lr', 'metrics.status', 'metrics["a=b"]']
        """
        field = f"metrics.{metric}"
        is_taken = metric in ORDERS or is_field(metric) or metric.lower() in _HEADINGS
        is_taken = is_taken or metric in self.objectives or _outer(metric) in self.parameters
        return metric if not is_taken and _reads_bare(metric) else spelled_field(field)

    def unknown(self, name: str) -> QueryError:
        """Return the refusal of a name that means nothing, with the names that are near."""
        own = [*self.objectives, *sorted(self.parameters), *(self.heading(one.name) for one in self.metrics)]
        own = [*dict.fromkeys(own)]
        return QueryError(f"there is no column '{name[:80]}': {_hint(name, own, [*_HEADINGS, *FIELDS])}")

    def check(self, field: str, db: Database) -> None:
        """Raise `QueryError` for a parameter or a metric that neither the config nor any trial has."""
        head, _, name = field.partition(".")
        known = self._known(head)
        if not name or head not in _NOUNS or (head == "value" and name == "default"):
            return
        outer = _outer(name) if head == "parameters" else name
        if name in known or outer in known or not known:
            return
        if head == "value" and (is_field(name) or name in self._known("metrics")):
            self.check(name, db)  # a name that exists is suggested, or refused with those that are near
            right = name if is_field(name) else self.heading(name)
            raise QueryError(f"there is no objective '{name}': write {right}")
        if not _is_found(db, f"{head}.{outer}"):
            raise QueryError(f"no trial has a {_NOUNS[head]} '{outer[:80]}': {_hint(outer, sorted(known))}")

    def _known(self, head: str) -> Collection[str]:
        if head == "value":
            return self.objectives
        if head == "parameters":
            return self.parameters
        return {one.name for one in self.metrics if one.is_final or head == "metrics"}


def marks_of(objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Return the names of the columns that mark trials: those on the front, and those that violate a limit."""
    has = (
        sum(one.direction is not None for one in objectives) > 1,
        any(one.is_limited for one in objectives),
    )
    return tuple(name for name, is_there in zip(MARKS, has, strict=True) if is_there)


def field_of(name: str, names: FieldNames, db: Database) -> str:
    """Return the field that a name means; raise `QueryError` for one that means nothing, with the names that are near.

    A metric that only few trials have, so that `names` do not have it, is looked for in all of them.
    """
    name = plain_field(name)
    if (field := names.field(name)) is not None:
        return field
    if _is_found(db, rare := f"metrics.{name}"):
        return rare
    raise names.unknown(name)


def with_fields(query: TrialQuery, read: Callable[[], FieldNames], db: Database) -> TrialQuery:
    """Return a query with the fields that its names mean; `read` returns the names once there is one to look up.

    Raise `QueryError` as `field_of` does.
    """
    asked = {condition.field for condition in query.conditions} | ({query.sort} - {"best"})
    unclear = [name for name in asked if not is_field(name)]
    if not unclear:
        return query
    names = read()
    fields = {name: field_of(name, names, db) for name in unclear}
    conditions = [replace(one, field=fields.get(one.field, one.field)) for one in query.conditions]
    sort = query.sort if query.sort == "best" else fields.get(query.sort, query.sort)
    return replace(query, conditions=conditions, sort=sort)


def check_kind(condition: Condition, db: Database) -> None:
    """Raise `QueryError` for a condition that compares a text by order with a parameter or metric of numbers."""
    field, value = condition.field, condition.value
    if (
        condition.symbol not in ORDERED
        or not isinstance(value, str)
        or field.partition(".")[0] not in JSON_HEADS
    ):
        return
    if _is_found(db, field, "<=", math.inf) and not _is_found(db, field, ">=", ""):
        raise QueryError(f"'{value}' is a text, and {field} has numbers: write a number without quotes")


def _is_found(db: Database, field: str, symbol: str = "!=", value: float | str | None = None) -> bool:
    found = TrialQuery(conditions=[Condition(field, symbol, value)], limit=0)
    return read_trials(db, found).total > 0


def _outer(name: str) -> str:
    return re.split("[./]", name)[0]


def _reads_bare(name: str) -> bool:
    """Return whether a name is itself where a condition, an order or a list of columns has it."""
    if name.startswith("-") or "," in name or not name.isprintable():
        return False
    try:
        check_quotes(name)
        return [one.field for one in Condition.parse_all(f"{name} < 1")] == [name]
    except QueryError:
        return False


def _hint(name: str, own: Sequence[str], others: Sequence[str] = ()) -> str:
    if alike := get_close_matches(name, [*own, *others], n=3):
        return f"did you mean {' or '.join(alike)}?"
    more = f" and {len(own) - _MOST_NAMED:,} more" if len(own) > _MOST_NAMED else ""
    return f"there are {', '.join(own[:_MOST_NAMED])}{more}"
