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

    Early-stopped trials are drawn at their last result, unless `stopped` is False. With a `step`, every trial is drawn
    at its intermediate result of that number, from 1, if it has come so far. An `objective` may be any metric that
    trials report, except in `plot_edf`. `log` chooses the scale of the results, by default what suits them; `show_all`
    also shows results that would flatten the others; `smoothing` is at least 0 and less than 1.

    Each call reads the folder again, and nothing needs to run. All methods raise `StoreError` if the experiment cannot
    be read, `KeyError`, with the known names, for a metric that no trial has reported or an unknown parameter,
    `ValueError` for a step below 1, and `MissingExtraError` without plotly.
    """

    def _folder_to_plot(self) -> Path:
        raise NotImplementedError

    def plot_history(
        self,
        objective: str | None = None,
        *,
        stopped: bool = True,
        step: int | None = None,
        log: bool | None = None,
        show_all: bool = False,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw the result of each trial and the best so far, for one objective or for all."""
        options = {"stopped": stopped, "log": log, "show_all": show_all}
        return self._figure("plot_history", objective, step=step, theme=theme, **options)

    def plot_curves(
        self,
        objective: str | None = None,
        *,
        smoothing: float = 0.0,
        log: bool | None = None,
        show_all: bool = False,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw the intermediate results of at most 200 trials; those of early-stopped trials are grey."""
        options = {"smoothing": smoothing, "log": log, "show_all": show_all}
        return self._figure("plot_curves", metric=objective, theme=theme, curves=200, **options)

    def plot_parallel(
        self,
        objective: str | None = None,
        parameters: Sequence[str] | None = None,
        *,
        stopped: bool = True,
        step: int | None = None,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw parallel coordinates: each trial is a line across its parameters, coloured by its result."""
        options = {"parameters": parameters, "stopped": stopped}
        return self._figure("plot_parallel", objective, step=step, theme=theme, **options)

    def plot_importance(
        self,
        objective: str | None = None,
        *,
        stopped: bool = True,
        step: int | None = None,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw how much of the results' variance each parameter explains, and how reliable that is."""
        read = {"metric": objective, "curves": 200, "step": step}
        return self._figure("plot_importance", objective, stopped=stopped, theme=theme, **read)

    def plot_slice(
        self,
        objective: str | None = None,
        parameters: Sequence[str] | None = None,
        *,
        stopped: bool = True,
        step: int | None = None,
        log: bool | None = None,
        show_all: bool = False,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw the result against each parameter alone."""
        options = {"parameters": parameters, "stopped": stopped, "log": log, "show_all": show_all}
        return self._figure("plot_slice", objective, step=step, theme=theme, **options)

    def plot_contour(
        self,
        x: str | None = None,
        y: str | None = None,
        objective: str | None = None,
        *,
        stopped: bool = True,
        step: int | None = None,
        show_all: bool = False,
        theme: Theme = "light",
    ) -> go.Figure:
        """Draw the result over two parameters, smoothed between the trials; by default over those that matter most.

        Raise `ValueError` if both parameters are the same.
        """
        options = {"stopped": stopped, "show_all": show_all, "theme": theme}
        read = {"metric": objective, "step": step, "curves": 200 if x is None or y is None else 0}
        return self._figure("plot_contour", x, y, objective, **read, **options)

    def plot_timeline(self, *, theme: Theme = "light") -> go.Figure:
        """Draw when and where each attempt ran, and how it ended."""
        return self._figure("plot_timeline", theme=theme, attempts=True)

    def plot_schedule(self, parameters: Sequence[str] | None = None, *, theme: Theme = "light") -> go.Figure:
        """Draw with which parameters the trials of a population trained when, and whose checkpoints they copied."""
        return self._figure("plot_schedule", parameters, theme=theme, schedules=True)

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
        self,
        function: str,
        *arguments: Any,
        curves: int = 0,
        metric: str | None = None,
        step: int | None = None,
        attempts: bool = False,
        schedules: bool = False,
        **options: Any,
    ) -> go.Figure:
        from .server import figures

        require_extra(*_NEEDS)
        folder = self._folder_to_plot()
        table = _table(
            folder, curves=curves, metric=metric, step=step, attempts=attempts, schedules=schedules
        )
        return getattr(figures, function)(table, *arguments, **options)


def _table(folder: Path, *, curves: int = 0, **options: Any) -> ExperimentTable:
    from .server import read_table
    from .store.reading import ExperimentView

    with ExperimentView(folder) as view:
        return read_table(view, curves=curves, **options)
