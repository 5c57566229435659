"""The choice of a display for a run."""

from __future__ import annotations

from typing import IO

from .display import Display, PlainDisplay, SilentDisplay

__all__ = ["make_display"]


def make_display(output: IO[str], errors: IO[str], *, quiet: bool, lines: bool = True) -> Display:
    """Return a live display on a terminal, else one of lines (if `lines`) or of warnings only."""
    if quiet:
        return SilentDisplay(errors)
    if output.isatty():
        from .live import LiveDisplay

        return LiveDisplay(output)
    return PlainDisplay(output, errors) if lines else SilentDisplay(errors)
