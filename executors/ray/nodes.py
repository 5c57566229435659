"""The nodes of a Ray cluster: which it has, what they offer, and the groups in which it reserves them for a trial.

Nodes are asked for by a client with a timeout: Ray's state API waits forever, and ends the whole process when another
control service replies at the same address.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...runner import Request, Totals

_ALIVE = 0


class ClusterAway(Exception):
    """The control service of the cluster does not reply; it may come back."""


class ClusterReplaced(Exception):
    """Another cluster replies at the address of the one that this process has joined."""


@dataclass(frozen=True, slots=True)
class RayNode:
    """A live node of the cluster, and its resources by Ray's names."""

    node_id: str
    host: str
    amounts: Mapping[str, float]


def live_nodes(timeout: float) -> tuple[RayNode, ...]:
    """Return the nodes of the cluster that this process has joined; block up to `timeout` seconds.

    Raise `ClusterAway` or `ClusterReplaced`.
    """
    worker: Any = importlib.import_module("ray._private.worker").global_worker
    errors: Any = importlib.import_module("ray.exceptions")
    try:
        infos = worker.gcs_client.get_all_node_info(timeout=timeout).values()
    except errors.AuthenticationError as error:
        raise ClusterReplaced("another cluster answers in its place") from error
    except (errors.RpcError, AttributeError) as error:  # AttributeError: this process has disconnected
        raise ClusterAway("it does not answer") from error
    alive = [info for info in infos if info.state == _ALIVE]
    return tuple(
        RayNode(info.node_id.hex(), info.node_manager_hostname, dict(info.resources_total)) for info in alive
    )


def totals_of(nodes: Iterable[RayNode]) -> Totals:
    """Return the sum of the nodes' resources; Ray itself assigns GPUs to workers.

    >>> totals_of([RayNode("a", "host", {"CPU": 2.0, "GPU": 1.0}), RayNode("b", "host", {"CPU": 1.0, "node:b": 1.0})])
    Totals(amounts={'CPU': 3.0}, devices=(), trials_per_device=1, anonymous_gpus=1.0, orders_per_agent=1)
    """
    amounts: dict[str, float] = {}
    for node in nodes:
        for name, amount in node.amounts.items():
            if not is_internal(name):
                amounts[name] = amounts.get(name, 0.0) + amount
    gpus = amounts.pop("GPU", 0.0)
    return Totals(amounts=amounts, anonymous_gpus=gpus)


def is_internal(name: str) -> bool:
    """Return whether Ray uses this resource itself."""
    return name == "object_store_memory" or name.startswith("node:")


def make_group(name: str, request: Request) -> Any:
    """Reserve a bundle on each of a trial's nodes, all or none; the group outlives this process, as agents do."""
    util: Any = importlib.import_module("ray.util")
    bundles = [_amounts(request.per_node)] * request.nodes
    return util.placement_group(bundles, strategy="STRICT_SPREAD", name=name, lifetime="detached")


def remove_group(name: str) -> None:
    """Release a group, if there is one; Ray ends what still runs in it."""
    util: Any = importlib.import_module("ray.util")
    try:
        group = util.get_placement_group(name)
    except ValueError:
        return
    util.remove_placement_group(group)


def actor_options(request: Request, group: Any = None, node: int = 0) -> dict[str, Any]:
    """Return the options of a Ray actor for a trial's request, or for its part on one node of a group.

    >>> actor_options(Request(cpus=2, memory=1024, gpus=0.5, custom={"widget": 1}))
    {'num_cpus': 2, 'num_gpus': 0.5, 'memory': 1024, 'resources': {'widget': 1}}
    """
    part = request.per_node
    options: dict[str, Any] = {"num_cpus": part.cpus, "num_gpus": part.gpus or 0}
    if part.memory:
        options["memory"] = part.memory
    if part.custom:
        options["resources"] = dict(part.custom)
    if group is not None:
        strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
        options["scheduling_strategy"] = strategies.PlacementGroupSchedulingStrategy(group, node)
    return options


def too_few_nodes(nodes: Iterable[RayNode], request: Request) -> str:
    """Return a warning if too few nodes have what a trial takes on each; empty otherwise.

    >>> nodes = [RayNode("a", "ada", {"CPU": 4.0}), RayNode("b", "bob", {"CPU": 1.0})]
    >>> too_few_nodes(nodes, Request(cpus=4, nodes=2))
    'a trial needs 2 nodes with 2 CPU each, and 1 of 2 nodes has that: trials wait'
    """
    bundle, there = _amounts(request.per_node), list(nodes)
    fitting = sum(_fits(bundle, node.amounts) for node in there)
    if fitting >= request.nodes:
        return ""
    needs = ", ".join(f"{amount:g} {name}" for name, amount in bundle.items())
    has = "has" if fitting == 1 else "have"
    return (
        f"a trial needs {request.nodes} nodes with {needs} each, and {fitting} of {len(there)} nodes {has} that:"
        " trials wait"
    )


def _fits(bundle: Mapping[str, float], amounts: Mapping[str, float]) -> bool:
    return all(amounts.get(name, 0.0) >= amount for name, amount in bundle.items())


def _amounts(request: Request) -> dict[str, float]:
    """Return a request by Ray's names."""
    return {**request.amounts, **({"GPU": request.gpus} if request.gpus else {})}
