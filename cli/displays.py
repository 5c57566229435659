"""Which display suits a run: live on a terminal, lines elsewhere."""

from __future__ import annotations

from typing import IO

from .display import Display, PlainDisplay, SilentDisplay

__all__ = ["make_display"]


def make_display(output: IO[str], errors: IO[str], *, quiet: bool, lines: bool = True) -> Display:
    """The display that suits: live on a terminal, lines elsewhere (if `lines`), or only warnings."""
    if quiet:
        return SilentDisplay(errors)
    if output.isatty():
        from .live import LiveDisplay

        return LiveDisplay(output)
    return PlainDisplay(output, errors) if lines else SilentDisplay(errors)
