"""The look of figures: two templates, and colours that work on both and for colour-blind readers.

The colours of series have luminances between 0.12 and 0.30, so their contrast with both backgrounds is at least 3:1.
No trace depends on the theme: `layout.template` alone turns a figure from light to dark. Series also differ by symbol
or dash. Colour scales are parts of Cividis: the better the value, the further from the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...protocol import JsonObject
from ...telling import STATUS_WORDS

if TYPE_CHECKING:
    import plotly.graph_objects as go

ThemeName = Literal["light", "dark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of a background and of what is drawn on it; `scale` goes from the best to the worst."""

    name: ThemeName
    background: str
    ink: str
    faint: str
    grid: str
    hover: str
    scale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """The look and the name of a group of trials."""

    name: str
    color: str
    symbol: str
    dash: str = "solid"

    def size(self, usual: float) -> float:
        """Return the size of a mark: the edge of an open one lies outside, and would make it larger than the others."""
        return usual - 1 if self.symbol.endswith("-open") and self is not VIOLATES else usual


LIGHT = Theme(
    name="light",
    background="#ffffff",
    ink="#1b1f24",
    faint="#5c636b",
    grid="#e3e6ea",
    hover="#ffffff",
    scale=("#00224e", "#35456c", "#666970", "#8b8677", "#b0a473", "#cfbd66"),
)
DARK = Theme(
    name="dark",
    background="#14171b",
    ink="#e6e8eb",
    faint="#9aa2ab",
    grid="#2d333a",
    hover="#22272d",
    scale=("#fee838", "#dec657", "#b6a667", "#918a72", "#706f6f", "#4f576c"),
)

BLUE, VERMILION, GREEN = "#1f87c8", "#d55e00", "#009e73"
PURPLE, OCHRE, GREY = "#b55fa3", "#a37a00", "#7d838b"
BEST = GREEN

# For overlaid experiments and objectives, in this order, then again with the next dash.
SERIES: tuple[tuple[str, str], ...] = tuple(
    (color, dash)
    for dash in ("solid", "dash", "dot", "dashdot")
    for color in (BLUE, VERMILION, GREEN, PURPLE, OCHRE)
)

STATUS_LOOKS: dict[str, Look] = {
    "SUCCEEDED": Look(STATUS_WORDS["SUCCEEDED"], BLUE, "circle"),
    "EARLY_STOPPED": Look(STATUS_WORDS["EARLY_STOPPED"], GREY, "circle-open", "dot"),
    "FAILED": Look(STATUS_WORDS["FAILED"], VERMILION, "x"),
    "RUNNING": Look(STATUS_WORDS["RUNNING"], OCHRE, "triangle-right"),
    "PAUSED": Look(STATUS_WORDS["PAUSED"], PURPLE, "square-open"),
    "WAITING": Look(STATUS_WORDS["WAITING"], OCHRE, "diamond-open"),
    "USER_CANCELED": Look(STATUS_WORDS["USER_CANCELED"], PURPLE, "cross"),
    "SYS_CANCELED": Look(STATUS_WORDS["SYS_CANCELED"], PURPLE, "cross-open"),
}

VIOLATES = Look("violates a limit", GREY, "x-thin-open")


def theme_of(name: ThemeName) -> Theme:
    """Return a theme by its name; raise `ValueError` for an unknown one.

    >>> theme_of("dark").background
    '#14171b'
    """
    themes = {"light": LIGHT, "dark": DARK}
    if name not in themes:
        raise ValueError(f"there is no theme '{name}': light or dark")
    return themes[name]


def template(name: ThemeName) -> go.layout.Template:
    """Return the plotly template of a theme; setting `figure.layout.template` to the other one switches the theme."""
    import plotly.graph_objects as go

    return go.layout.Template(layout=template_layout(name))


def template_layout(name: ThemeName) -> JsonObject:
    """Return the layout of a theme's template as JSON, for a browser that sets the theme itself.

    >>> template_layout("dark")["font"]["color"]
    '#e6e8eb'
    """
    theme = theme_of(name)
    axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.faint,
        "tickcolor": theme.faint,
        "zerolinecolor": theme.grid,
        "zeroline": False,
        "automargin": True,
        "ticks": "outside",
        "ticklen": 4,
        "title": {"standoff": 8, "font": {"size": 13}},
        "exponentformat": "power",
    }
    return {**_surface(theme), "xaxis": axis, "yaxis": axis, "scene": _scene(theme)}


def _surface(theme: Theme) -> JsonObject:
    steps = len(theme.scale) - 1
    scale = [[number / steps, color] for number, color in enumerate(theme.scale)]
    return {
        "paper_bgcolor": theme.background,
        "plot_bgcolor": theme.background,
        "font": {
            "color": theme.ink,
            "family": "system-ui, -apple-system, 'Segoe UI', sans-serif",
            "size": 13,
        },
        "title": {"font": {"size": 16}, "x": 0.0, "xanchor": "left", "xref": "container", "pad": {"l": 16}},
        "margin": {"l": 60, "r": 24, "t": 56, "b": 48},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.01, "xanchor": "right", "x": 1.0},
        "hoverlabel": {
            "bgcolor": theme.hover,
            "bordercolor": theme.faint,
            "font": {"color": theme.ink, "size": 12},
            "align": "left",
        },
        "coloraxis": {
            "colorscale": scale,
            "colorbar": {
                "thickness": 12,
                "outlinewidth": 0,
                "title": {"side": "right", "font": {"size": 13}},
            },
        },
        "annotationdefaults": {"font": {"color": theme.faint, "size": 12}, "showarrow": False},
        "colorway": [color for color, _ in SERIES[:5]],
    }


def _scene(theme: Theme) -> JsonObject:
    axis = {"backgroundcolor": theme.background, "gridcolor": theme.grid, "linecolor": theme.faint}
    return {"xaxis": axis, "yaxis": axis, "zaxis": axis}
