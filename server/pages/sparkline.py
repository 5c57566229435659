"""A small line of the best result so far, laid out on the server for the list of experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from nicegui import ui

from ...store.reading import number_text
from .elements import attributed

__all__ = ["draw_sparkline", "sparkline"]

_MOST_STEPS = 100
_WIDTH, _HEIGHT = 100, 20


def sparkline(best: Sequence[float | None]) -> dict[str, str]:
    """Return the path of the best result after each trial and what it says; empty before there are two.

    >>> sparkline([None, 3.0, 2.0, 2.0])
    {'says': 'Best result over 3 trials: 3 to 2', 'path': 'M0 0H50V20H100V20'}
    """
    known = [value for value in best if value is not None and isfinite(value)]
    if len(known) < 2:
        return {}
    low, high = min(known) / 2, max(known) / 2  # halves: the difference of two floats may be infinite
    span = high - low

    def height(place: int) -> str:
        return f"{_HEIGHT * ((high - known[place] / 2) / span if span else 0.5):.4g}"

    steps = "".join(
        f"H{_WIDTH * place / (len(known) - 1):.4g}V{height(place)}" for place in _corners(known)[1:]
    )
    says = f"Best result over {len(known)} trials: {number_text(known[0])} to {number_text(known[-1])}"
    return {"says": says, "path": f"M0 {height(0)}{steps}"}


def draw_sparkline(line: Mapping[str, str]) -> None:
    """Draw a line of `sparkline`."""
    if not line:
        return
    box = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "preserveAspectRatio": "none"}
    with attributed(ui.element("svg"), role="img", aria_label=line["says"], **box).classes("pp-sparkline"):
        attributed(ui.element("path"), d=line["path"])


def _corners(values: Sequence[float]) -> list[int]:
    """Return the places where the values change, thinned out, with both ends."""
    changes = [place for place in range(1, len(values)) if values[place] != values[place - 1]]
    thin = max(1, -(-len(changes) // _MOST_STEPS))
    return sorted({0, *changes[::-thin], len(values) - 1})
