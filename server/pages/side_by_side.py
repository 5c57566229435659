"""Rows of a table in which trials, or experiments, stand side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nicegui import html

from ...telling import escaped, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """A row of texts, one for each column; `best` are the places of the best ones, `notes` follow the texts."""

    name: str
    values: Sequence[str]
    best: Sequence[int] = ()
    notes: Sequence[str] = ()

    @property
    def differs(self) -> bool:
        """Whether the columns differ here."""
        return len(set(self.values)) > 1


def best_places(values: Mapping[int, float], direction: str | None) -> list[int]:
    """Return the places of the best values; none without a direction, or if all are equal.

    >>> best_places({0: 0.5, 1: 0.9, 2: 0.9}, "maximize"), best_places({0: 0.5, 1: 0.5}, "minimize")
    ([1, 2], [])
    """
    if direction is None or len(set(values.values())) < 2:
        return []
    best = (max if direction == "maximize" else min)(values.values())
    return [place for place, value in values.items() if value == best]


def show_rows(rows: Iterable[SideBySide], *, only_differences: bool = False) -> None:
    """Make these rows, or those that differ, in a table."""
    for row in rows:
        if row.differs or not only_differences:
            _show_row(row)


def _show_row(row: SideBySide) -> None:
    with html.tr().classes("pp-differs" if row.differs else ""):
        with html.th(visible(row.name)).props("scope=row"):
            if row.differs:
                html.span(" (differs)").classes("pp-hidden")
        for place, value in enumerate(row.values):
            with html.td():
                text = "–" if value in ("", "-") else escaped(value)
                (html.strong if place in row.best else html.span)(text)
                if row.notes:
                    html.span(row.notes[place]).classes("pp-dim pp-note")
