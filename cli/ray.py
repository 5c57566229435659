"""`pitchpipe ray status` and `ray stop`: the private Ray that experiments of this user share."""

from __future__ import annotations

import json

import click

from .app import LazyGroup
from .failures import explained
from .verb import verb

__all__ = ["ray", "status", "stop"]


class _RayGroup(LazyGroup):
    table = {  # noqa: RUF012
        "status": ("ray:status", "Tell whether a private Ray runs, and who uses it."),
        "stop": ("ray:stop", "End the private Ray and all that runs in it."),
    }


@click.group("ray", cls=_RayGroup)
def ray() -> None:
    """See or end the private Ray.

    Experiments without an `address` share one Ray per user, which leaves by itself when it has been idle for
    `idle_timeout`. Clusters that you started yourself are not touched.

    \b
    Example:
      pitchpipe ray status
    """


@verb("status", "pitchpipe ray status", "pitchpipe ray status --json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, or null.")
def status(as_json: bool) -> None:
    """Tell whether a private Ray runs, and who uses it."""
    from ..manager.ray_lease import ray_status

    found = ray_status()
    if as_json:
        click.echo(json.dumps(found))
    elif found is None:
        click.echo("no private Ray runs")
    else:
        for name, value in found.items():
            click.echo(f"{name:14} {value if isinstance(value, str) else json.dumps(value)}")


@verb("stop", "pitchpipe ray stop")
def stop() -> None:
    """End the private Ray and all that runs in it, also the trials of running experiments."""
    from ..manager.ray_lease import stop_ray

    with explained():
        stopped = stop_ray()
    click.echo("the private Ray is stopped" if stopped else "no private Ray runs")
