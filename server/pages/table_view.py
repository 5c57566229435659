"""What the table of trials shows, as its address says: search, filters, order and columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...store.reading import Condition, QueryError, TrialQuery
from .grid_columns import Column
from .wording import STATUSES

__all__ = ["TableView", "problem_of"]


_FILTER = ("filterType", "type", "filter", "filterTo")


@dataclass(slots=True, kw_only=True)
class TableView:
    """The choices of a user; `sort` is a field, descending with a minus; no `columns` mean the usual ones."""

    search: str = ""
    where: str = ""
    statuses: list[str] = field(default_factory=list)
    sort: str = ""
    filters: Mapping[str, Any] = field(default_factory=dict)
    columns: Sequence[str] = ()

    @classmethod
    def parse(cls, search: str, where: str, status: str, sort: str, filters: str, columns: str) -> TableView:
        """Read the query of an address; what makes no sense is left out.

        >>> TableView.parse("", "", "FAILED,NONE", "-duration", "{", "status,duration").statuses
        ['FAILED']
        """
        try:
            model = json.loads(filters or "{}")
        except ValueError:
            model = {}
        return cls(
            search=search,
            where=where,
            statuses=[word for word in status.split(",") if word in STATUSES],
            sort=sort,
            filters=model if isinstance(model, dict) else {},
            columns=[word for word in columns.split(",") if word],
        )

    @property
    def is_filtered(self) -> bool:
        """Whether some trials may be left out by what stands above the table."""
        return bool(self.search or self.where or self.statuses)

    def filters_of(self, columns: Sequence[Column]) -> dict[str, dict[str, Any]]:
        """Return the filters of these columns, with what a filter of the grid has and nothing else.

        The grid calls options whose names begin with a colon, and the address of the page may come from anywhere.

        >>> filters = '{"duration": {"type": "lessThan", "filter": 3, ":x": "alert(1)"}, ":x": "alert(1)"}'
        >>> TableView.parse("", "", "", "", filters, "").filters_of([Column(field="duration", head="Took")])
        {'duration': {'type': 'lessThan', 'filter': 3}}
        """
        found = {one.field: self.filters.get(one.field) for one in columns}
        return {
            name: {key: model[key] for key in _FILTER if isinstance(model.get(key), str | int | float)}
            for name, model in found.items()
            if isinstance(model, dict)
        }

    def definition(self, column: Column, usual: str) -> dict[str, Any]:
        """Return the definition of a column for AG Grid; `usual` is the order without a choice."""
        sort = self.sort or usual
        hidden = column.field not in self.columns if self.columns else column.hidden
        order = (
            {"sort": "desc" if sort.startswith("-") else "asc"} if sort.lstrip("-") == column.field else {}
        )
        return {**column.definition, "hide": hidden, **order}


def problem_of(where: str) -> str:
    """Return what is wrong with a condition; nothing if it can be asked.

    >>> problem_of("parameters.lr < 0.1"), problem_of("")
    ('', '')
    >>> problem_of("nothing = 1")[:36]
    "'nothing' is not a field of a trial:"
    """
    try:
        TrialQuery(conditions=Condition.parse_all(where) if where.strip() else ()).where()
    except QueryError as error:
        return str(error)
    return ""
