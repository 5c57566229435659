"""`pitchpipe ray status` and `ray stop`: the private Ray that experiments of this user share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import click

from ..app import LazyGroup
from ..failures import explained
from ..verb import verb

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
    from ...executors.private_ray import ray_status

    found = ray_status()
    if as_json:
        click.echo(json.dumps(found))
    elif found is None:
        click.echo("no private Ray runs")
    else:
        for line in _lines(found):
            click.echo(line)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """A keeper's answer in words."""
    if found.get("starting"):
        yield f"a private Ray starts (process {found['pid']})"
        return
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    yield f"a private Ray runs at {found['address']} ({versions})"
    yield f"  process  {found['pid']}{_since(found.get('since'))}"
    yield f"  used by  {_users(found)}"
    yield f"  leaves   {_leaving(found)}"
    yield f"  files    {found['temp_dir']}"


def _since(moment: float | None) -> str:
    from ...store.reading import moment_text

    return "" if moment is None else f", since {moment_text(moment)}"


def _users(found: dict[str, Any]) -> str:
    agents = Counter(name.partition("/")[0] for name in found["agents"])
    users = [f"experiment {name} ({number_of(count, 'agent')})" for name, count in agents.items()]
    return ", ".join(users) or (number_of(found["leases"], "experiment") if found["leases"] else "nobody")


def _leaving(found: dict[str, Any]) -> str:
    from ...store.reading import duration_text, length_text

    if found.get("seconds_left") is not None:
        return f"in {duration_text(found['seconds_left'])}, if no experiment comes"
    timeout = found["idle_timeout"]
    return f"{length_text(timeout)} after the last experiment" if timeout else "with the last experiment"


def number_of(count: int, noun: str) -> str:
    """A count with its noun.

    >>> number_of(1, "agent"), number_of(2, "agent")
    ('1 agent', '2 agents')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def staying_line(config: Mapping[str, Any]) -> str:
    """What there is to say at the end of an experiment about the private Ray; empty if nothing is."""
    from ...executors.private_ray import ray_status
    from ...store.reading import length_text

    service = config.get("trainingService", {})
    if service.get("platform") != "ray" or service.get("address"):
        return ""
    with suppress(OSError):
        found = ray_status()
        if found and found.get("idle_timeout") and not found["leases"]:
            stays = length_text(found["idle_timeout"])
            return f"the private Ray stays for {stays}; to end it now: pitchpipe ray stop"
    return ""


@verb("stop", "pitchpipe ray stop")
def stop() -> None:
    """End the private Ray and all that runs in it, also the trials of running experiments."""
    from ...executors.private_ray import stop_ray

    with explained():
        stopped = stop_ray()
    click.echo("the private Ray is stopped" if stopped else "no private Ray runs")
