"""Placement groups: the resources of a trial on several nodes, which Ray reserves together or not at all."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from ...runner import Request
from .nodes import Node


def make_group(name: str, request: Request) -> Any:
    """Reserve a bundle on each of as many nodes; the group outlives this process, as agents do."""
    util: Any = importlib.import_module("ray.util")
    bundle = _amounts(request.per_node)
    return util.placement_group(
        [bundle] * request.nodes, strategy="STRICT_SPREAD", name=name, lifetime="detached"
    )


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


def too_few_nodes(nodes: Iterable[Node], request: Request) -> str:
    """Return a warning if too few nodes have what a trial takes on each; empty otherwise.

    >>> nodes = [Node("a", "ada", {"CPU": 4.0}), Node("b", "bob", {"CPU": 1.0})]
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
