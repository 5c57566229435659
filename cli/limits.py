"""The options that set new limits of an experiment."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["Duration", "limit_options"]


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


def limit_options(function: Any) -> Any:
    """Add `--max-trial-number`, `--max-experiment-duration` and `--trial-concurrency`."""
    count = click.IntRange(min=1)
    for option in (
        click.option("--trial-concurrency", type=count, metavar="N", help="New limit: N trials at a time."),
        click.option(
            "--max-experiment-duration",
            type=Duration(),
            metavar="D",
            help="New limit: D of running time in all (2h).",
        ),
        click.option("--max-trial-number", type=count, metavar="N", help="New limit: N trials in all."),
    ):
        function = option(function)
    return function
