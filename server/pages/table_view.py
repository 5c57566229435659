"""What the address of the page of trials says about its table, so that a reload or a bookmark shows the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from ...protocol import JsonObject
from ...telling import STATUS_WORDS
from .grid_columns import Column

_MOST = 100  # selected trials that an address keeps
_FILTER_OPTIONS = ("filterType", "type", "filter", "filterTo")


@dataclass(slots=True, kw_only=True)
class TableView:
    """What the address of the page says about the table; `sort` is a field, after a minus if it is descending.

    Without `columns` the usual ones are shown. `families` shows those of repeats in place of the trials, None as suits
    the rest of the address; `selected` are the numbers of the trials that were selected.
    """

    search: str = ""
    where: str = ""
    statuses: list[str] = field(default_factory=list)
    sort: str = ""
    filters: JsonObject = field(default_factory=dict)
    columns: Sequence[str] = ()
    families: bool | None = None
    selected: Sequence[int] = ()

    @classmethod
    def parse(
        cls,
        search: str,
        where: str,
        status: str,
        sort: str,
        filters: str,
        columns: str,
        families: str = "",
        selected: str = "",
    ) -> TableView:
        """Read the query of an address, without what makes no sense; the names of columns are percent-encoded.

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
            statuses=[word for word in status.split(",") if word in STATUS_WORDS],
            sort=sort,
            filters=model if isinstance(model, dict) else {},
            columns=[unquote(word) for word in columns.split(",") if word],
            families=None if not families else families != "0",
            selected=[int(word) for word in selected.split(",") if word.isascii() and word.isdecimal()][
                :_MOST
            ],
        )

    @property
    def suits_families(self) -> bool:
        """Whether families can be shown: the address asks for nothing that only single trials have."""
        return not (self.is_filtered or self.filters)

    @property
    def is_filtered(self) -> bool:
        """Whether the controls above the table may leave out trials."""
        return bool(self.search or self.where or self.statuses)

    def filters_of(self, columns: Sequence[Column]) -> dict[str, JsonObject]:
        """Return the filters of these columns, with the options of a filter and no others.

        The grid runs options whose names begin with a colon, and the address of the page may come from anywhere.

        >>> filters = '{"duration": {"type": "lessThan", "filter": 3, ":x": "alert(1)"}, ":x": "alert(1)"}'
        >>> TableView.parse("", "", "", "", filters, "").filters_of([Column(field="duration", head="Took")])
        {'duration': {'type': 'lessThan', 'filter': 3}}
        """
        models = {column.field: self.filters.get(column.field) for column in columns}
        return {
            name: {
                key: model[key] for key in _FILTER_OPTIONS if isinstance(model.get(key), str | int | float)
            }
            for name, model in models.items()
            if isinstance(model, dict)
        }

    def definition(self, column: Column, usual: str) -> JsonObject:
        """Return the definition of a column for AG Grid; `usual` is the order without a choice."""
        sort = self.sort or usual
        hidden = column.field not in self.columns if self.columns else column.hidden
        order = (
            {"sort": "desc" if sort.startswith("-") else "asc"} if sort.lstrip("-") == column.field else {}
        )
        return {**column.definition, "hide": hidden, **order}
