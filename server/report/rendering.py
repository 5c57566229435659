"""The report as a page: texts and figures, each with a sentence about it, in one self-contained HTML file."""

from __future__ import annotations

import base64
import gzip
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ...protocol import JsonObject, require_extra
from ...store import whole_file
from ...store.reading import ExperimentView
from ...telling import escaped
from .. import figures
from ..experiment_table import read_table
from ..figures import ExperimentTable
from .report_texts import texts_of
from .reproducing import configuration_text, steps_of

if TYPE_CHECKING:
    import plotly.graph_objects as go


def write_report(folder: Path, path: Path) -> int:
    """Write the report of an experiment's folder to a file, all of it or nothing; return its size in bytes.

    Raise `StoreError` if the experiment cannot be read, `OSError` if the file cannot be written, and
    `MissingExtraError` without the extra `ui`.
    """
    require_extra("a report needs", "ui", "jinja2", "plotly")
    with ExperimentView(folder) as view:
        page = render_report(view).encode("utf-8")
    with whole_file(path) as file:
        file.write(page)
    return len(page)


def render_report(view: ExperimentView) -> str:
    """Return the page of an experiment. Everything from the experiment is escaped by the template, or packed."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_controls,
    )
    table = read_table(view, attempts=True)
    drawings = drawings_of(table)
    return environment.from_string(_own("report.html.j2")).render(
        texts=texts_of(view, table),
        drawings=drawings,
        steps=steps_of(view),
        configuration=configuration_text(view),
        css=Markup(_own("report.css")),
        js=Markup(_own("report.js")),
        plotly=_packed_plotly(),
        figures=_packed_drawings(drawings),
        # Scripts without this word do not run, wherever they come from.
        nonce=secrets.token_urlsafe(16),
    )


def _without_controls(value: object) -> object:
    """Return what the template writes: texts without control characters, and its own markup as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return escaped(value, keep="\n\t")
    return value


def _own(name: str) -> str:
    return files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8")


_USUAL = "Default"
_AXIS, _PANEL = 90, 240  # pixels that an axis of parallel coordinates and a panel need: a narrow page scrolls


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
    first, *others = _every(table)
    return [first, *(drawing for drawing in others if drawing.figure.data)]


# The title of a figure, and a sentence about it.
_WORDS = {
    "history": ("History", "Every result, and the best so far."),
    "pareto": ("Pareto front", "The trials that no other trial dominates."),
    "importance": (
        "Parameter importance",
        "How much of the results' variance each parameter explains alone, over the whole search space.",
    ),
    "curves": ("Intermediate results", "The learning curves; trials that were stopped early are grey."),
    "parallel": ("Parallel coordinates", "Drag along an axis to show only the trials that pass there."),
    "slice": ("Slices", "The result against each parameter alone."),
    "timeline": ("Timeline", "When and where each attempt ran, and how it ended."),
}


class _Options(TypedDict, total=False):
    """Options of the functions that draw figures."""

    objective: str
    log: bool
    show_all: bool
    smoothing: float


def _every(table: ExperimentTable) -> Iterator[Drawing]:
    importance = figures.importance(table)
    all_results: dict[str, _Options] = {"All results": {"show_all": True}}
    scales: dict[str, _Options] = {"Logarithmic": {"log": True}, "Linear": {"log": False}, **all_results}
    smooth: dict[str, _Options] = {f"Smoothing {share}": {"smoothing": share} for share in (0.3, 0.6, 0.9)}
    others = {f"Objective {goal.name}": goal.name for goal in table.objectives[1:]}
    goals: dict[str, _Options] = {name: {"objective": goal} for name, goal in others.items()}
    yield _drawing("history", table, scales)
    if len(table.objectives) > 1:
        yield _drawing("pareto", table, all_results)
    views = {name: figures.plot_importance(table, goal) for name, goal in others.items()}
    views = {_USUAL: figures.plot_importance(importance), **views}
    yield Drawing("importance", *_WORDS["importance"], views)
    yield _drawing("curves", table, {**smooth, **scales})
    yield _drawing("parallel", table, goals)
    yield _drawing("slice", table, {**goals, **scales})
    yield from _contour(table, importance.names)
    yield _drawing("timeline", table, {})


def _drawing(name: str, table: ExperimentTable, options: Mapping[str, _Options]) -> Drawing:
    """Return a drawing with the views that differ from its usual one."""
    plot: Callable[..., go.Figure] = getattr(figures, f"plot_{name}")
    usual = plot(table)
    views = {view: plot(table, **chosen) for view, chosen in options.items()} if usual.data else {}
    others = {view: figure for view, figure in views.items() if figure != usual}
    return Drawing(name, *_WORDS[name], {_USUAL: usual, **others})


def _contour(table: ExperimentTable, important: Sequence[str]) -> Iterator[Drawing]:
    """Draw the first two parameters, the `important` ones before the others, that exist in the same trials."""
    varying = {dimension.name: dimension for dimension in table.dimensions if dimension.varies}
    in_order = [varying[name] for name in dict.fromkeys([*important, *varying]) if name in varying]
    if len(in_order) >= 2:
        names = [dimension.name for dimension in figures.existing_together(in_order)]
        caption = f"The result over {names[0]} and {names[1]}, smoothed between the trials."
        yield Drawing("contour", "Contour", caption, {_USUAL: figures.plot_contour(table, *names)})


def _packed(text: str) -> str:
    """Return a text as the page contains it: compressed, in base64, so that nothing in it can end a script element.

    >>> gzip.decompress(base64.b64decode(_packed("</script>"))).decode()
    '</script>'
    """
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode("ascii")


def _packed_drawings(drawings: list[Drawing]) -> str:
    """Return the figures without their titles, and the templates of both themes once for all of them."""
    templates = {name: figures.template(name).to_plotly_json() for name in ("light", "dark")}
    made = {
        drawing.id: {name: _untitled(view) for name, view in drawing.views.items()} for drawing in drawings
    }
    return _packed(json.dumps({"templates": templates, "figures": made}))


def _untitled(figure: go.Figure) -> JsonObject:
    """Return a figure as JSON without its title, which the page has as a heading, and without the room for it."""
    untitled: JsonObject = json.loads(figure.to_json() or "{}")
    layout = untitled["layout"]
    layout.pop("template", None)
    layout.pop("title", None)
    has_tall_labels = any(trace["type"] == "parcoords" for trace in untitled["data"])
    layout["margin"] = {**layout.get("margin", {}), "t": 84 if has_tall_labels else 36}
    return untitled


@cache
def _packed_plotly() -> str:
    """Return plotly's own JavaScript, from its Python package (MIT license, named in its first lines); packed once."""
    from plotly.offline import get_plotlyjs

    return _packed(get_plotlyjs())
