"""Which nodes a Ray cluster has, and whether its control service replies.

This uses a client with a timeout: Ray's state API waits forever, and ends the whole process when another control
service replies at the same address.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...runner import Totals

_ALIVE = 0


class ClusterAway(Exception):
    """The control service of the cluster does not reply; it may come back."""


class ClusterReplaced(Exception):
    """Another cluster replies at the address of the one that this process has joined."""


@dataclass(frozen=True, slots=True)
class Node:
    """A live node of the cluster, and its resources by Ray's names."""

    node_id: str
    host: str
    amounts: Mapping[str, float]


def live_nodes(timeout: float) -> tuple[Node, ...]:
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
        Node(info.node_id.hex(), info.node_manager_hostname, dict(info.resources_total)) for info in alive
    )


def totals_of(nodes: Iterable[Node]) -> Totals:
    """Return the sum of the nodes' resources; Ray itself assigns GPUs to workers.

    >>> totals_of([Node("a", "host", {"CPU": 2.0, "GPU": 1.0}), Node("b", "host", {"CPU": 1.0, "node:b": 1.0})])
    Totals(amounts={'CPU': 3.0}, devices=(), trials_per_device=1, anonymous_gpus=1.0, orders_per_agent=1)
    """
    amounts: Counter[str] = Counter()
    for node in nodes:
        amounts.update({name: amount for name, amount in node.amounts.items() if not is_internal(name)})  # type: ignore[arg-type]
    gpus = float(amounts.pop("GPU", 0.0))
    return Totals(amounts={name: float(amount) for name, amount in amounts.items()}, anonymous_gpus=gpus)


def is_internal(name: str) -> bool:
    """Return whether Ray uses this resource itself."""
    return name == "object_store_memory" or name.startswith("node:")
