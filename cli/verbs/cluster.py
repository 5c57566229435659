"""`pitchpipe cluster`: Ray on several machines, by ssh."""

from __future__ import annotations

import shlex
import sys

import click

from ..app import LazyGroup
from ..failures import FAILED, Failure
from ..verb import WholeNumber, json_option, say, verb

_NONE = "no cluster was started here"


class _ClusterGroup(LazyGroup):
    table = {  # noqa: RUF012
        "up": ("cluster:up", "Start Ray on several machines."),
        "status": ("cluster:status", "Show on which of them it runs."),
        "down": ("cluster:down", "End it on all of them."),
    }


@click.group("cluster", cls=_ClusterGroup)
def cluster() -> None:
    """Start Ray on several machines by ssh, show or end it.

    The machines need the same versions of Python, Ray and Pitchpipe as this one, and ssh must log in without a
    password. The first machine is the head: the others and this one connect to it.

    \b
    Example:
      pitchpipe cluster up --hosts node1,node2,node3
    """


@verb(
    "up",
    "pitchpipe cluster up --hosts node1,node2,node3",
    "pitchpipe cluster up --hosts ada@10.0.0.1,ada@10.0.0.2 --python /opt/tuning/bin/python",
)
@click.option(
    "--hosts", required=True, metavar="A,B,...", help="The machines, as ssh knows them; the head first."
)
@click.option(
    "--port", type=WholeNumber(1, 65535), default=6379, show_default=True, help="The port of the head."
)
@click.option("--python", metavar="PATH", help="Python with Pitchpipe there.  [default: this path]")
@click.option(
    "--ssh", default="ssh", show_default=True, metavar="COMMAND", help="The ssh command, with its options."
)
@json_option
def up(hosts: str, port: int, python: str | None, ssh: str, as_json: bool) -> None:
    """Start Ray on several machines, and print what experiment.yml needs to run trials there.

    If one machine cannot be used, nothing is left running on the others. Only processes with the token of the
    cluster can use it; experiments that are started here as this user find the token themselves.
    """
    from ...executors.clusters import ClusterError, cluster_up

    names = [name.strip() for name in hosts.split(",") if name.strip()]
    if not names or len(set(names)) < len(names) or any(name.startswith("-") for name in names):
        raise Failure(f"--hosts: name each machine once, separated by commas, not {hosts!r}")
    try:
        started = cluster_up(names, port=port, python=python or sys.executable, ssh=shlex.split(ssh))
    except ClusterError as error:
        raise Failure(str(error), FAILED) from error
    lines = (
        f"Ray runs on {', '.join(started.hosts)}. Write into experiment.yml:",
        "",
        "training_service:",
        "  platform: ray",
        f"  address: {started.address}",
    )
    say(as_json, {"address": started.address, "hosts": started.hosts}, *lines)


@verb("status", "pitchpipe cluster status", "pitchpipe cluster status --json")
@json_option
def status(as_json: bool) -> None:
    """Show on which machines the cluster runs that `cluster up` started."""
    from ...executors.clusters import Cluster, cluster_status

    current = Cluster.current()
    if current is None:
        say(as_json, {"address": None, "hosts": [], "states": {}}, _NONE)
        return
    states = cluster_status(current)
    lines = (f"  {host}  {state}" for host, state in states.items())
    shown = {"address": current.address, "hosts": list(states), "states": states}
    say(as_json, shown, f"a Ray cluster at {current.address}", *lines)


@verb("down", "pitchpipe cluster down")
@json_option
def down(as_json: bool) -> None:
    """End the cluster that `cluster up` started, and everything that runs in it."""
    from ...executors.clusters import Cluster, cluster_down

    current = Cluster.current()
    if current is None:
        say(as_json, {"address": None, "hosts": []}, _NONE)
        return
    if failed := cluster_down(current):
        what = "\n".join(f"{host}: {why}" for host, why in failed.items())
        raise Failure(f"{what}\nit may still run there: repeat `pitchpipe cluster down`", FAILED)
    line = f"the cluster at {current.address} has ended on {', '.join(current.hosts)}"
    say(as_json, {"address": current.address, "hosts": current.hosts}, line)
