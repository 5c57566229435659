"""`pitchpipe ray status` and `ray stop`: the private Ray cluster that a user's experiments share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from ...protocol import Config, counted
from ...telling import duration_text, length_text, moment_text
from ..app import LazyGroup
from ..failures import errors_as_failures
from ..verb import json_option, say, verb

if TYPE_CHECKING:
    from ...executors.private_ray import RayStatus, StartingRay


class _RayGroup(LazyGroup):
    table = {  # noqa: RUF012
        "status": ("ray:status", "Show the private Ray cluster and its users."),
        "stop": ("ray:stop", "Stop the private Ray cluster and everything in it."),
    }


@click.group("ray", cls=_RayGroup)
def ray() -> None:
    """Show or stop the private Ray cluster.

    Experiments without an `address` share one Ray cluster per user. It stops by itself after `idle_timeout`
    without an experiment. Clusters that you started yourself are not affected.

    \b
    Example:
      pitchpipe ray status
    """


@verb("status", "pitchpipe ray status", "pitchpipe ray status --json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, or null.")
def status(as_json: bool) -> None:
    """Show the private Ray cluster and its users."""
    from ...executors.private_ray import ray_status

    state = ray_status()
    if as_json:
        click.echo(json.dumps(state))
    elif state is None:
        click.echo("no private Ray is running")
    else:
        for line in _lines(state):
            click.echo(line)


def _lines(state: RayStatus | StartingRay) -> Iterator[str]:
    if "starting" in state:
        yield f"a private Ray is starting (process {state['pid']})"
        return
    versions = ", ".join(f"{name} {version}" for name, version in state["versions"].items())
    yield f"a private Ray is running at {state['address']} ({versions})"
    since = "" if state.get("since") is None else f", since {moment_text(state['since'])}"
    yield f"  process  {state['pid']}{since}"
    yield f"  used by  {_users(state)}"
    yield f"  stops    {_leaving(state)}"
    yield f"  files    {state['temp_dir']}"


def _users(state: RayStatus) -> str:
    agents = Counter(name.partition("/")[0] for name in state["agents"])
    users = [f"experiment {name} ({counted(count, 'agent')})" for name, count in agents.items()]
    return ", ".join(users) or (
        counted(state["leases"], "experiment") if state["leases"] else "no experiment"
    )


def _leaving(state: RayStatus) -> str:
    if (seconds := state["seconds_left"]) is not None:
        return f"in {duration_text(seconds)}, unless an experiment uses it"
    timeout = state["idle_timeout"]
    return f"{length_text(timeout)} after the last experiment" if timeout else "with the last experiment"


def staying_line(config: Config) -> str:
    """Return a line about the private Ray for the end of an experiment; empty if there is none."""
    from ...executors.private_ray import ray_status

    service = config.get("trainingService", {})
    if service.get("platform") != "ray" or service.get("address"):
        return ""
    with suppress(OSError):
        state = ray_status()
        if state and "starting" not in state and state["idle_timeout"] and not state["leases"]:
            stays = length_text(state["idle_timeout"])
            return f"the private Ray stays for {stays}; to stop it now: pitchpipe ray stop"
    return ""


@verb("stop", "pitchpipe ray stop")
@json_option
def stop(as_json: bool) -> None:
    """Stop the private Ray cluster and everything in it, including trials of running experiments."""
    from ...executors.private_ray import stop_ray

    with errors_as_failures():
        stopped = stop_ray()
    line = "the private Ray was stopped" if stopped else "no private Ray is running"
    say(as_json, {"stopped": bool(stopped)}, line)
