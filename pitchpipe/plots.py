"""The figures of an experiment as methods, for notebooks: drawn from its folder, whether it is running or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .protocol import require_extra

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .server.figures import ExperimentTable

Theme = Literal["light", "dark"]
_NEEDS = ("figures need", "ui", "plotly")


class Plots:
    """Draws an experiment as plotly figures, which docs/use/figures.md shows; `theme` is "light" or "dark".

    `log` chooses the scale of the results, by default what suits them; `show_all` also shows results that would flatten
    the others; `smoothing` is at least 0 and less than 1. Each call reads the folder again, and nothing needs to run.
    All methods raise `StoreError` if the experiment cannot be read, `KeyError`, with the known names, for an unknown
    objective or parameter, and `MissingExtraError` without plotly.
    """

    def _folder_to_plot(self) -> Path:
        raise NotImplementedError

    def plot_history(
        self,
        objective: str | None = None,
        *,
        log: bool | None = None,
        show_all: bool = False,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw the result of each trial and the best so far, for one objective or for all."""
        return self._figure("plot_history", objective, log=log, show_all=show_all, theme=theme)

    def plot_curves(
        self,
        *,
        smoothing: float = 0.0,
        log: bool | None = None,
        show_all: bool = False,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw the intermediate results of at most 200 trials; those of early-stopped trials are grey."""
        options = {"smoothing": smoothing, "log": log, "show_all": show_all}
        return self._figure("plot_curves", theme=theme, curves=200, **options)

    def plot_parallel(
        self, objective: str | None = None, parameters: Sequence[str] | None = None, *, theme: Theme = "light"
    ) -> go.Figure:
        """Draw parallel coordinates: each trial is a line across its parameters, coloured by its result."""
        return self._figure("plot_parallel", objective, parameters=parameters, theme=theme)

    def plot_importance(self, objective: str | None = None, *, theme: Theme = "light") -> go.Figure:
        """Draw how much of the results' variance each parameter explains, and how reliable that is."""
        return self._figure("plot_importance", objective, theme=theme)

    def plot_slice(
        self,
        objective: str | None = None,
        parameters: Sequence[str] | None = None,
        *,
        log: bool | None = None,
        show_all: bool = False,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw the result against each parameter alone."""
        options = {"parameters": parameters, "log": log, "show_all": show_all}
        return self._figure("plot_slice", objective, theme=theme, **options)

    def plot_contour(
        self, x: str, y: str, objective: str | None = None, *, theme: Theme = "light"
    ) -> go.Figure:
        """Draw the result over two parameters, smoothed between the trials; raise `ValueError` if they are the same."""
        return self._figure("plot_contour", x, y, objective, theme=theme)

    def plot_timeline(self, *, theme: Theme = "light") -> go.Figure:
        """Draw when and where each attempt ran, and how it ended."""
        return self._figure("plot_timeline", theme=theme, attempts=True)

    def plot_pareto(
        self, objectives: Sequence[str] | None = None, *, show_all: bool = False, theme: Theme = "light"
    ) -> go.Figure:
        """Draw the trials by two objectives, with those on the Pareto front marked."""
        return self._figure("plot_pareto", objectives, show_all=show_all, theme=theme)

    def plot_edf(
        self, *others: Plots | str | Path, objective: str | None = None, theme: Theme = "light"
    ) -> go.Figure:
        """Draw which share of the trials reaches each result, and the best so far, here and in other experiments."""
        from .server import figures
        from .store import absolute

        require_extra(*_NEEDS)
        folders = [
            other._folder_to_plot() if isinstance(other, Plots) else absolute(other) for other in others
        ]
        tables = [_table(folder) for folder in (self._folder_to_plot(), *folders)]
        return figures.plot_edf(tables, objective, theme=theme)

    def _figure(
        self, function: str, *arguments: Any, curves: int = 0, attempts: bool = False, **options: Any
    ) -> go.Figure:
        from .server import figures

        require_extra(*_NEEDS)
        table = _table(self._folder_to_plot(), curves=curves, attempts=attempts)
        return getattr(figures, function)(table, *arguments, **options)


def _table(folder: Path, *, curves: int = 0, attempts: bool = False) -> ExperimentTable:
    from .server import read_table
    from .store.reading import ExperimentView

    with ExperimentView(folder) as view:
        return read_table(view, curves=curves, attempts=attempts)
