"""Figures on a page: redrawn in place, named for screen readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["FigureView"]

_CLEAR = "rgba(0, 0, 0, 0)"
_CONFIG = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}


class FigureView:
    """A place for a figure; the user's zoom survives a redraw."""

    def __init__(self, name: str, classes: str = "") -> None:
        self._plot = ui.plotly({"data": [], "layout": {"height": 300}, "config": _CONFIG}).classes(
            f"pp-plot {classes}"
        )
        self._plot.props(f'role=img aria-label="{name}"')

    def show(self, figure: go.Figure) -> None:
        """Draw a figure."""
        figure.update_layout(paper_bgcolor=_CLEAR, plot_bgcolor=_CLEAR)  # show the colour of the panel
        made: dict[str, Any] = figure.to_plotly_json()
        self._plot.style(f"height: {made['layout'].get('height', 420)}px")
        self._plot.update_figure({**made, "config": _CONFIG})
