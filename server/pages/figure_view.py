"""Figures on a page: redrawn in place, named for screen readers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from nicegui.elements.plotly import Plotly

from .elements import attributed, scripted
from .frame import Where

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["FigureView"]

_USUAL_HEIGHT = 320
_AXIS = 90  # pixels for an axis of parallel coordinates
_CLEAR = "rgba(0, 0, 0, 0)"
_CONFIG = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}


# Points carry the number of their trial; a curve has it in its `meta`.
_OPEN_TRIAL = (
    "event => { const point = event.points?.[0];"
    " const trial = [point?.customdata ?? point?.data?.meta].flat()[0];"
    " if (Number.isInteger(trial)) location.href = ROOT + trial }"
)


# The ranges brushed on the axes of parallel coordinates, in their order.
_RANGES = (
    "() => emit((getHtmlElement(ID)?.data?.[0]?.dimensions ?? []).map(axis => axis.constraintrange ?? null))"
)


class _Plot(Plotly, component="figure.js"):
    """NiceGUI's element, drawn in the theme of the page."""


class FigureView:
    """A place for a figure; the user's zoom survives a redraw, and a click on a point opens its trial.

    The figure is `height` pixels high, or as high as it says, and at least as high as the window if it is to `fill` it.
    """

    def __init__(
        self, name: str, where: Where | None = None, *, height: int | None = None, fill: bool = False
    ) -> None:
        self._height = height
        self._fill = fill
        hidden = {"visible": False}
        layout = {"xaxis": hidden, "yaxis": hidden, "paper_bgcolor": _CLEAR, "plot_bgcolor": _CLEAR}
        self._plot = _Plot({"data": [], "layout": layout, "config": _CONFIG})
        # Until it is shown, its place has the same height, so that the page does not jump.
        self._plot.classes("pp-plot pp-awaited")
        self._set_height(_USUAL_HEIGHT)
        attributed(self._plot, role="figure", aria_label=name)
        if where is not None:
            root = where.path("trials") + "/"
            self._plot.on("plotly_click", js_handler=scripted(_OPEN_TRIAL, ROOT=root))

    def on_brush(self, brushed: Callable[[list[Any]], Awaitable[None]]) -> None:
        """Call `brushed` with the ranges on the axes of parallel coordinates whenever one has changed."""

        async def handle(event: Any) -> None:
            await brushed(event.args)

        self._plot.on("plotly_restyle", handle, js_handler=scripted(_RANGES, ID=self._plot.id))

    def show(self, figure: go.Figure) -> None:
        """Draw a figure."""
        figure.update_layout(paper_bgcolor=_CLEAR, plot_bgcolor=_CLEAR)  # show the colour of the panel
        made: dict[str, Any] = figure.to_plotly_json()
        layout = made["layout"]
        layout.pop("template", None)  # the browser has it
        height = layout.pop("height", 420)
        axes = len(made["data"][0].get("dimensions") or ()) if made["data"] else 0
        self._plot.classes(remove="pp-awaited")
        self._set_height(height)
        self._plot.style["min-width"] = f"{_AXIS * axes}px"
        self._plot.update_figure({**made, "config": _CONFIG})

    def _set_height(self, usual: int) -> None:
        height = f"{self._height or usual}px"
        self._plot.style["height"] = f"max({height}, var(--pp-fill))" if self._fill else height
