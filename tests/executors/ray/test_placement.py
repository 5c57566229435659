"""What Ray is asked to reserve; `test_gang` has it do so."""

from __future__ import annotations

from pitchpipe.executors.ray.nodes import RayNode, actor_options, too_few_nodes
from pitchpipe.runner.ledger import Request


def test_each_node_provides_its_part() -> None:
    request = Request(cpus=8, memory=4096, gpus=4, custom={"fast": 1}, nodes=2)
    expected = {"num_cpus": 4, "num_gpus": 2, "memory": 2048, "resources": {"fast": 0.5}}
    assert actor_options(request) == expected


def test_nodes_that_are_too_small_or_too_few_are_counted() -> None:
    nodes = [
        RayNode(name, name, {"CPU": cpus, "GPU": 1.0}) for name, cpus in (("a", 4.0), ("b", 4.0), ("c", 1.0))
    ]
    assert too_few_nodes(nodes, Request(cpus=8, gpus=2, nodes=2)) == ""
    lacking = too_few_nodes(nodes, Request(cpus=12, gpus=3, nodes=3))
    assert lacking == "a trial needs 3 nodes with 4 CPU, 1 GPU each, and 2 of 3 nodes have that: trials wait"
