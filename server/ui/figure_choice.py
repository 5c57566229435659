"""The figure that is shown, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from .. import figures
from ..figures import ExperimentTable, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["FIGURES", "Choice", "draw"]

FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "history": "History",
        "curves": "Intermediate results",
        "parallel": "Parallel coordinates",
        "importance": "Importance",
        "slice": "Slice",
        "contour": "Contour",
        "timeline": "Timeline",
        "pareto": "Pareto front",
        "edf": "Compare experiments",
    }
)
_TAKES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "history": frozenset({"objective"}),
        "parallel": frozenset({"objective", "parameters"}),
        "importance": frozenset({"objective"}),
        "slice": frozenset({"objective", "parameters"}),
        "contour": frozenset({"objective", "x", "y"}),
        "edf": frozenset({"objective", "others"}),
    }
)


@dataclass(slots=True, kw_only=True)
class Choice:
    """The user's choices; those that the current figure does not use are kept for the others."""

    figure: str
    objective: str | None = None
    x: str = ""
    y: str = ""
    parameters: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def takes(self, name: str) -> bool:
        """Return whether the figure uses a choice of this name."""
        return name in _TAKES.get(self.figure, ())


def draw(
    choice: Choice, table: ExperimentTable, others: Sequence[ExperimentTable], theme: ThemeName
) -> go.Figure:
    """Draw the chosen figure of an experiment; `others` are experiments to compare it with.

    >>> draw(Choice(figure="pareto"), figures.example_table(), (), "light").data[1].name
    'on the front'
    """
    if choice.figure == "contour":
        return _contour(choice, table, theme)
    if choice.figure == "edf":
        return _edf(choice, [table, *others], theme)
    given = {"objective": choice.objective, "parameters": choice.parameters or None}
    options = {name: value for name, value in given.items() if choice.takes(name)}
    return getattr(figures, f"plot_{choice.figure}")(table, theme=theme, **options)


def _contour(choice: Choice, table: ExperimentTable, theme: ThemeName) -> go.Figure:
    if not choice.x or choice.x == choice.y:
        return figures.nothing(theme, "Contour", "Choose two different parameters.")
    return figures.plot_contour(table, choice.x, choice.y, choice.objective, theme=theme)


def _edf(choice: Choice, tables: Sequence[ExperimentTable], theme: ThemeName) -> go.Figure:
    """Only experiments that have the objective can be compared."""
    name = tables[0].objective(choice.objective).name
    comparable = [table for table in tables if any(one.name == name for one in table.objectives)]
    return figures.plot_edf(comparable, name, theme=theme)
