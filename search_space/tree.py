"""The parameters as a tree, and the walks over it: build a point, read one, count, find what is active."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from .json_values import identity
from .parameter import Parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
from .problems import Path, Problem, nearest, show
from .units import UnitMap, unit_map

__all__ = ["Branch", "Node", "build", "count", "faults", "fill", "grow", "mark_active"]


@dataclass(frozen=True, slots=True)
class Branch:
    """One option of a nested choice: its `_name` and its sub-parameters."""

    label: Any
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A parameter in the tree; `index` is its position in the flat list and in a vector."""

    name: str
    index: int
    parameter: Parameter
    unit: UnitMap
    branches: tuple[Branch, ...]

    def branch_of(self, label: Any) -> Branch:
        """Return the branch with this `_name`, which must exist."""
        wanted = identity(label)
        return next(branch for branch in self.branches if identity(branch.label) == wanted)


def grow(parameters: Sequence[Parameter]) -> tuple[Node, ...]:
    """Return the top-level nodes of parameters that are listed parents first."""
    groups: dict[tuple[int, int] | None, list[Node]] = {}
    # Children come after their parents, so going backwards every choice finds its branches complete.
    for index in reversed(range(len(parameters))):
        parameter = parameters[index]
        branches = tuple(
            Branch(label, tuple(reversed(groups.get((index, option), ()))))
            for option, label in enumerate(parameter.options if parameter.nested else ())
        )
        node = Node(
            name=parameter.name,
            index=index,
            parameter=parameter,
            unit=unit_map(parameter),
            branches=branches,
        )
        groups.setdefault(parameter.parent, []).append(node)
    return tuple(reversed(groups.get(None, ())))


def build(nodes: tuple[Node, ...], units: Sequence[float]) -> dict[str, Any]:
    """Return the point of the space at these units, which must lie in [0, 1]."""
    point = {}
    for node in nodes:
        value = node.unit.from_unit(units[node.index])
        if node.branches:
            branch = node.branches[value]
            value = {"_name": branch.label, **build(branch.nodes, units)}
        point[node.name] = value
    return point


def fill(nodes: tuple[Node, ...], point: dict[str, Any], vector: NDArray[np.float64]) -> None:
    """Write the units of a valid point into a vector; inactive entries stay unchanged."""
    for node in nodes:
        value = point[node.name]
        if node.branches:
            fill(node.branch_of(value["_name"]).nodes, value, vector)
            value = value["_name"]
        vector[node.index] = node.unit.to_unit(value)


def mark_active(nodes: tuple[Node, ...], vector: Sequence[float], active: NDArray[np.bool_]) -> None:
    """Set `active` for the parameters that a point with these units has; a NaN choice has no branch."""
    for node in nodes:
        active[node.index] = True
        unit = vector[node.index]
        if node.branches and unit == unit:
            mark_active(node.branches[node.unit.from_unit(unit)].nodes, vector, active)


def count(nodes: tuple[Node, ...]) -> int | None:
    """Return the number of distinct points, or None if it is not finite."""
    sizes = [_count_node(node) for node in nodes]
    finite = [size for size in sizes if size is not None]
    return prod(finite) if len(finite) == len(sizes) else None


def _count_node(node: Node) -> int | None:
    if not node.branches:
        return node.parameter.size
    sizes = [count(branch.nodes) for branch in node.branches]
    finite = [size for size in sizes if size is not None]
    return sum(finite) if len(finite) == len(sizes) else None


def faults(nodes: tuple[Node, ...], point: Any, path: Path = (), *, nested: bool = False) -> list[Problem]:
    """Return why `point` is not a point of the space: what is missing, unknown, or not a possible value."""
    if not isinstance(point, dict):
        return [Problem(path, f"expected an object, not {show(point)}")]
    known = [node.name for node in nodes]
    problems = [p for node in nodes for p in _faults_of_node(node, point, path)]
    expected = {*known, "_name"} if nested else set(known)
    for name in point:
        if name not in expected:
            problems.append(Problem((*path, str(name)), "there is no such parameter", nearest(name, known)))
    return problems


def _faults_of_node(node: Node, point: dict[str, Any], path: Path) -> list[Problem]:
    here = (*path, node.name)
    if node.name not in point:
        return [Problem(here, "is missing")]
    value = point[node.name]
    if not node.branches:
        message = node.unit.fault(value)
        return [Problem(here, message)] if message else []
    if not isinstance(value, dict) or "_name" not in value:
        return [Problem(here, f"expected an object with a _name, not {show(value)}")]
    if message := node.unit.fault(value["_name"]):
        return [Problem((*here, "_name"), message)]
    return faults(node.branch_of(value["_name"]).nodes, value, here, nested=True)
