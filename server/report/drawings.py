"""The figures of a report, each with a sentence about it, packed for the page."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from .. import figures
from ..figures import ExperimentTable, Importance

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["Drawing", "drawings_of", "packed", "packed_drawings", "packed_plotly"]


_USUAL = "Default"
_AXIS, _PANEL = 90, 240  # pixels that an axis of parallel coordinates and a panel need; a narrow page scrolls


@dataclass(frozen=True, slots=True)
class Drawing:
    """One figure of a report in several views, by their names; the first one is shown at the beginning."""

    id: str
    title: str
    caption: str
    views: Mapping[str, go.Figure]

    @property
    def figure(self) -> go.Figure:
        """The first view."""
        return next(iter(self.views.values()))

    @property
    def height(self) -> int:
        """The height in pixels."""
        return self.figure.to_plotly_json()["layout"].get("height", 420)

    @property
    def width(self) -> int:
        """The width in pixels that it needs at least, 0 if it fits into any."""
        made = self.figure.to_plotly_json()
        axes = len(made["data"][0].get("dimensions") or ()) if made["data"] else 0
        starts = {
            axis["domain"][0]
            for name, axis in made["layout"].items()
            if name.startswith("xaxis") and "domain" in axis
        }
        return max(_AXIS * axes, _PANEL * len(starts) if len(starts) > 1 else 0)


def drawings_of(table: ExperimentTable) -> list[Drawing]:
    """Return the figures that have something to show, and the first one always."""
    return [one for place, one in enumerate(_every(table)) if place == 0 or one.figure.data]


def _every(table: ExperimentTable) -> Iterator[Drawing]:
    found = figures.importance(table)
    scales = {"Logarithmic": {"log": True}, "Linear": {"log": False}, "All results": {"show_all": True}}
    smooth = {f"Smoothing {amount}": {"smoothing": amount} for amount in (0.3, 0.6, 0.9)}
    goals = {f"Objective {one.name}": {"objective": one.name} for one in table.objectives[1:]}
    yield _drawing(
        "history", "History", "Every result, and the best so far.", figures.plot_history, table, scales
    )
    if len(table.objectives) > 1:
        caption = "The trials that no other trial dominates."
        every = {"All results": {"show_all": True}}
        yield _drawing("pareto", "Pareto front", caption, figures.plot_pareto, table, every)
    caption = "How much of the results' variance each parameter explains alone, over the whole search space."
    views = {name: figures.plot_importance(table, options["objective"]) for name, options in goals.items()}
    views = {_USUAL: figures.plot_importance(found), **views}
    yield Drawing("importance", "Parameter importance", caption, views)
    caption = "The learning curves; trials that were stopped early are grey."
    curves = figures.plot_curves
    yield _drawing("curves", "Intermediate results", caption, curves, table, {**smooth, **scales})
    caption = "Drag along an axis to show only the trials that pass there."
    yield _drawing("parallel", "Parallel coordinates", caption, figures.plot_parallel, table, goals)
    caption = "The result against each parameter alone."
    yield _drawing("slice", "Slices", caption, figures.plot_slice, table, {**goals, **scales})
    yield from _contour(table, found)
    caption = "When and where each attempt ran, and how it ended."
    yield Drawing("timeline", "Timeline", caption, {_USUAL: figures.plot_timeline(table)})


def _drawing(
    name: str,
    title: str,
    caption: str,
    plot: Callable[..., go.Figure],
    table: ExperimentTable,
    options: Mapping[str, Mapping[str, Any]],
) -> Drawing:
    """Return a drawing with the views that differ from its usual one."""
    usual = plot(table)
    views = {view: plot(table, **chosen) for view, chosen in options.items()} if usual.data else {}
    others = {view: figure for view, figure in views.items() if figure != usual}
    return Drawing(name, title, caption, {_USUAL: usual, **others})


def _contour(table: ExperimentTable, found: Importance) -> Iterator[Drawing]:
    """Draw the two parameters that matter most and exist in the same trials, or the first of the space."""
    known = {one.name: one for one in table.dimensions if one.varies}
    in_order = [known[name] for name in dict.fromkeys([*found.names, *known]) if name in known]
    if len(in_order) >= 2:
        names = [one.name for one in figures.existing_together(in_order)]
        caption = f"The result over {names[0]} and {names[1]}, smoothed between the trials."
        yield Drawing("contour", "Contour", caption, {_USUAL: figures.plot_contour(table, *names)})


def packed(text: str) -> str:
    """Return a text as the page contains it: compressed, in base64, so that nothing in it can end a script element.

    >>> gzip.decompress(base64.b64decode(packed("</script>"))).decode()
    '</script>'
    """
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode("ascii")


def packed_drawings(drawings: list[Drawing]) -> str:
    """Return the figures without their titles, and the templates of both themes once for all of them."""
    templates = {name: figures.template(name).to_plotly_json() for name in ("light", "dark")}
    made = {one.id: {name: _untitled(view) for name, view in one.views.items()} for one in drawings}
    return packed(json.dumps({"templates": templates, "figures": made}))


def _untitled(figure: go.Figure) -> dict[str, Any]:
    """Return a figure as JSON without its title, which the page has as a heading, and without the room for it."""
    found = json.loads(figure.to_json() or "{}")
    layout = found["layout"]
    layout.pop("template", None)
    layout.pop("title", None)
    has_tall_labels = any(trace["type"] == "parcoords" for trace in found["data"])
    layout["margin"] = {**layout.get("margin", {}), "t": 84 if has_tall_labels else 36}
    return found


@cache
def packed_plotly() -> str:
    """Return plotly's own JavaScript, from its Python package (MIT license, named in its first lines); packed once."""
    from plotly.offline import get_plotlyjs

    return packed(get_plotlyjs())
