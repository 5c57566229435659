"""The figure that is shown, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from .. import figures
from ..figures import ExperimentTable

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["FIGURES", "MOST_COMPARED", "SMOOTHINGS", "Choice", "draw"]

MOST_COMPARED = 8
SMOOTHINGS = (0.0, 0.3, 0.6, 0.9)

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
        "history": frozenset({"objective", "log", "show_all"}),
        "curves": frozenset({"smoothing", "log", "show_all"}),
        "parallel": frozenset({"objective", "parameters"}),
        "importance": frozenset({"objective"}),
        "slice": frozenset({"objective", "parameters", "log", "show_all", "columns"}),
        "pareto": frozenset({"show_all", "columns"}),
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
    log: bool | None = None
    show_all: bool = False
    smoothing: float = 0.0
    columns: int = 4

    @classmethod
    def parse(cls, asked: Mapping[str, str]) -> Choice:
        """Read the query of an address; what makes no sense is left out.

        >>> Choice.parse({"figure": "slice", "parameters": "lr,units", "log": "true"}).parameters
        ('lr', 'units')
        """
        figure = asked.get("figure", "")
        words = {
            name: tuple(filter(None, asked.get(name, "").split(","))) for name in ("parameters", "others")
        }
        smoothing = asked.get("smoothing", "")
        return cls(
            figure=figure if figure in FIGURES else "history",
            objective=asked.get("objective") or None,
            x=asked.get("x", ""),
            y=asked.get("y", ""),
            parameters=words["parameters"],
            others=words["others"][:MOST_COMPARED],
            log={"true": True, "false": False}.get(asked.get("log", "")),
            show_all=asked.get("show_all") == "true",
            smoothing=float(smoothing) if smoothing in map(str, SMOOTHINGS) else 0.0,
        )

    def query(self) -> dict[str, str]:
        """Return the choices for the address; an empty one is not in it."""
        words = {name: ",".join(getattr(self, name)) for name in ("parameters", "others")}
        return {
            **words,
            "figure": self.figure,
            "objective": self.objective or "",
            "x": self.x,
            "y": self.y,
            "log": "" if self.log is None else str(self.log).lower(),
            "show_all": "true" if self.show_all else "",
            "smoothing": str(self.smoothing) if self.smoothing else "",
        }

    def known_in(self, table: ExperimentTable) -> Choice:
        """Return the choice without names that the experiment does not have."""
        names = [one.name for one in table.dimensions]
        goals = [one.name for one in table.objectives]
        return replace(
            self,
            objective=self.objective if self.objective in goals else None,
            parameters=tuple(name for name in self.parameters if name in names),
            x=self.x if self.x in names else "",
            y=self.y if self.y in names else "",
        )

    def takes(self, name: str) -> bool:
        """Return whether the figure uses a choice of this name."""
        return name in _TAKES.get(self.figure, ())


def draw(choice: Choice, table: ExperimentTable, others: Sequence[ExperimentTable]) -> go.Figure:
    """Draw the chosen figure of an experiment; `others` are experiments to compare it with.

    >>> draw(Choice(figure="pareto"), figures.example_table(), ()).data[1].name
    'on the front'
    """
    if choice.figure == "contour":
        return _contour(choice, table)
    if choice.figure == "edf":
        return figures.plot_edf([table, *others], choice.objective)
    given = {
        "objective": choice.objective,
        "parameters": choice.parameters or None,
        "log": choice.log,
        "show_all": choice.show_all,
        "smoothing": choice.smoothing,
        "columns": choice.columns,
    }
    options = {name: value for name, value in given.items() if choice.takes(name)}
    return getattr(figures, f"plot_{choice.figure}")(table, **options)


def _contour(choice: Choice, table: ExperimentTable) -> go.Figure:
    if not choice.x or choice.x == choice.y:
        return figures.nothing("light", "Contour", "Choose two different parameters.")
    return figures.plot_contour(table, choice.x, choice.y, choice.objective)
