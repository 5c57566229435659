"""A small line of the best result so far, drawn on the server for the list of experiments."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from ...store.reading import number_text

__all__ = ["sparkline"]

_MOST_STEPS = 100
_WIDTH, _HEIGHT = 100, 20


def sparkline(best: Sequence[float | None]) -> str:
    """Return an SVG element with the best result after each trial; empty before there are two.

    >>> sparkline([None, 3.0, 2.0, 2.0])  # doctest: +ELLIPSIS
    '<svg ... aria-label="Best result over 3 trials: 3 to 2"><path d="M0 0H50V20H100V20"/></svg>'
    """
    known = [value for value in best if value is not None and isfinite(value)]
    if len(known) < 2:
        return ""
    low, high = min(known), max(known)
    span = high - low

    def height(place: int) -> str:
        return f"{_HEIGHT * ((high - known[place]) / span if span else 0.5):.4g}"

    steps = "".join(
        f"H{_WIDTH * place / (len(known) - 1):.4g}V{height(place)}" for place in _corners(known)[1:]
    )
    start = f"M0 {height(0)}"
    said = f"Best result over {len(known)} trials: {number_text(known[0])} to {number_text(known[-1])}"
    shape = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none"'
    return (
        f'<svg class="pp-sparkline" role="img" {shape} aria-label="{said}"><path d="{start}{steps}"/></svg>'
    )


def _corners(values: Sequence[float]) -> list[int]:
    """Return the places where the values change, thinned out, with both ends."""
    changes = [place for place in range(1, len(values)) if values[place] != values[place - 1]]
    thin = max(1, -(-len(changes) // _MOST_STEPS))
    return sorted({0, *changes[::-thin], len(values) - 1})
