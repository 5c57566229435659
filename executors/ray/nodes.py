"""Which nodes a Ray cluster has, and whether its control service answers.

Asked by a client that gives up after a while: Ray's state API waits without end, and ends this whole process when
another control service answers in the place of the one that it knew.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...runner import Totals

__all__ = ["ClusterAway", "ClusterReplaced", "Node", "is_internal", "live_nodes", "totals_of"]

_ALIVE = 0


class ClusterAway(Exception):
    """The control service of the cluster does not answer; it may come back."""


class ClusterReplaced(Exception):
    """Another cluster answers where the one was that this process had joined."""


@dataclass(frozen=True, slots=True)
class Node:
    """A live node of the cluster, and what it has by Ray's names."""

    node_id: str
    host: str
    amounts: Mapping[str, float]


def live_nodes(timeout: float) -> tuple[Node, ...]:
    """The nodes of the cluster that this process has joined; blocks up to `timeout` seconds.

    Raises `ClusterAway` or `ClusterReplaced`.
    """
    worker: Any = importlib.import_module("ray._private.worker").global_worker
    errors: Any = importlib.import_module("ray.exceptions")
    try:
        infos = worker.gcs_client.get_all_node_info(timeout=timeout).values()
    except errors.AuthenticationError as error:
        raise ClusterReplaced("another cluster answers in its place") from error
    except (
        errors.RpcError,
        AttributeError,
    ) as error:  # AttributeError: this process is not connected any more
        raise ClusterAway("it does not answer") from error
    alive = [info for info in infos if info.state == _ALIVE]
    return tuple(
        Node(info.node_id.hex(), info.node_manager_hostname, dict(info.resources_total)) for info in alive
    )


def totals_of(nodes: Iterable[Node]) -> Totals:
    """Return what the nodes have together; Ray says which GPU a worker gets.

    >>> totals_of([Node("a", "host", {"CPU": 2.0, "GPU": 1.0}), Node("b", "host", {"CPU": 1.0, "node:b": 1.0})])
    Totals(amounts={'CPU': 3.0}, devices=(), trials_per_device=1, anonymous_gpus=1.0)
    """
    amounts: Counter[str] = Counter()
    for node in nodes:
        amounts.update({name: amount for name, amount in node.amounts.items() if not is_internal(name)})  # type: ignore[arg-type]
    gpus = float(amounts.pop("GPU", 0.0))
    return Totals({name: float(amount) for name, amount in amounts.items()}, anonymous_gpus=gpus)


def is_internal(name: str) -> bool:
    """Does Ray use this resource itself?"""
    return name == "object_store_memory" or name.startswith("node:")
