"""Durations on the command line."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["Duration"]


class Duration(click.ParamType):
    """A duration in seconds, or as text with a unit, as in the config."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        from ..config import UnitError, parse_duration

        try:
            seconds = parse_duration(float(value) if value.replace(".", "", 1).isdigit() else value)
        except UnitError as error:
            self.fail(f"{error}; write {error.hint}" if error.hint else str(error), param, ctx)
        if seconds <= 0:
            self.fail("must be more than 0 seconds", param, ctx)
        return seconds
