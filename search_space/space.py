"""The search space: what a tuner may propose, and the two-way map between its points and the unit cube."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from ..protocol import JsonObject, JsonPath, Parameters, brief
from .constraints import Constraint, Names, evaluation_error, read_constraints
from .json_checks import Problem, SearchSpaceError, identity, nearest, non_finite, plain_copy
from .parameter import Parameter
from .reading import read
from .units import UnitMap, unit_map

if TYPE_CHECKING:
    # The manager checks spaces and draws no points: it does not pay for numpy.
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

MAX_REJECTIONS = 10_000  # draws that may violate the constraints before sample() gives up
_PROBES = 16


def check(space: Any, constraints: Any = (), *, stored: bool = False) -> list[Problem]:
    """Return all problems of a search space and its constraints; never raise.

    A `stored` one may have options that are NaN or infinite: earlier versions took them.

    >>> for problem in check({"lr": {"_type": "uniform", "_value": [1, "1e-5"]}}): print(problem)
    lr._value[1]: '1e-5' is a string, not a number (YAML reads it as text: write 1.0e-5)
    """
    problems = _examine(space, constraints)[3]
    paths = [problem.path for problem in problems]
    more = [] if stored else non_finite(space)
    return problems + [new for new in more if not any(new.path[: len(path)] == path for path in paths)]


def impossible(space: Any, constraints: Any) -> list[Problem]:
    """Return the constraints of a valid search space that no sample keeps."""
    import numpy as np

    try:
        SearchSpace.parse(space, constraints).sample(np.random.default_rng(0))
    except SearchSpaceError as error:
        return list(error.problems)
    return []


def _examine(
    space: Any, constraints: Any
) -> tuple[tuple[Parameter, ...], tuple[_Node, ...], tuple[Constraint, ...], list[Problem]]:
    """Return the parameters, as a list and as a tree, the constraints, and all problems."""
    parameters, unread, problems = read(space)
    # Of several parameters with one dotted name, the outermost is meant.
    keys: dict[str, tuple[str, ...]] = {}
    for parameter in sorted(parameters, key=lambda parameter: len(parameter.key)):
        keys.setdefault(parameter.path, tuple(part for part in parameter.key if isinstance(part, str)))
    conditions, faults_in_conditions = read_constraints(constraints, Names(keys, unread))
    problems += faults_in_conditions
    if problems:
        return (), (), (), problems
    nodes = _grow(parameters)
    return parameters, nodes, conditions, _probe(nodes, len(parameters), conditions)


def _probe(nodes: tuple[_Node, ...], dimension: int, conditions: tuple[Constraint, ...]) -> list[Problem]:
    """Return the conditions that fail at every one of some points, perhaps by comparing a string with a number."""
    if not conditions:
        return []
    rng = random.Random(0)
    points = [_build(nodes, [rng.random() for _ in range(dimension)]) for _ in range(_PROBES)]
    reasons = [evaluation_error(condition, points) for condition in conditions]
    return [
        Problem(("constraints", i), f"cannot be evaluated: {reason}")
        for i, reason in enumerate(reasons)
        if reason
    ]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SearchSpace:
    """A valid search space; make one with `SearchSpace.parse`.

    A vector has one entry per parameter of `parameters`, in [0, 1], and NaN where the parameter is inactive.
    The cube is that of the CDFs: uniform vectors decode to samples.

    >>> space = SearchSpace.parse({"layers": {"_type": "randint", "_value": [1, 5]}})
    >>> space.decode([0.3]), space.encode({"layers": 2})
    ({'layers': 2}, array([0.375]))
    """

    specification: JsonObject
    constraints: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    size: int | None
    _bend: float
    _nodes: tuple[_Node, ...] = field(repr=False)
    _conditions: tuple[Constraint, ...] = field(repr=False)

    @classmethod
    def parse(cls, space: Any, constraints: Any = (), bend: float = 0.0) -> SearchSpace:
        """Read a search space in NNI's form and the conditions between its parameters.

        With a `bend` above 0, the low values of wide uniform ranges have more of the cube than samples have. Raise
        SearchSpaceError with every problem found.
        """
        parameters, nodes, conditions, problems = _examine(space, constraints)
        if problems:
            raise SearchSpaceError(problems)
        if bend:
            parameters = tuple(parameter.bent(bend) for parameter in parameters)
            nodes = _grow(parameters)
        texts = tuple(condition.text for condition in conditions)
        return cls(
            specification=plain_copy(space),
            constraints=texts,
            parameters=parameters,
            size=_count(nodes),
            _bend=bend,
            _nodes=nodes,
            _conditions=conditions,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # The closures inside do not pickle; what they were made from does.
        return (SearchSpace.parse, (self.specification, self.constraints, self._bend))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchSpace):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        # The keys hold the order of the parameters, which the specification's identity does not.
        keys = tuple(parameter.key for parameter in self.parameters)
        return keys, self.constraints, self._bend, identity(self.specification)

    def sample(self, rng: np.random.Generator) -> Parameters:
        """Draw a point that meets the constraints; each draw takes one number per parameter from `rng`.

        Raise SearchSpaceError if the constraints reject 10,000 draws in a row.
        """
        dimension = len(self.parameters)
        if not self._conditions:
            return _build(self._nodes, rng.random(dimension).tolist())
        rejected = []
        for _ in range(MAX_REJECTIONS):
            point = _build(self._nodes, rng.random(dimension).tolist())
            if all(condition.met(point) for condition in self._conditions):
                return point
            rejected.append(point)
        raise SearchSpaceError([self._why_rejected(rejected)])

    def _why_rejected(self, points: list[Parameters]) -> Problem:
        """Return the constraint that none of the points meets, or several that none meets together."""
        met = [{i for i, point in enumerate(points) if each.met(point)} for each in self._conditions]
        together = list(range(len(met)))
        for i in range(len(met)):
            others = [j for j in together if j != i]
            if others and not set.intersection(*(met[j] for j in others)):
                together = others
        *others, last = together
        message = f"{MAX_REJECTIONS} samples in a row violate this"
        hint = "loosen it, or narrow the bounds instead"
        if others:
            named = " or ".join(self._conditions[i].text for i in others)
            message = f"{MAX_REJECTIONS} samples in a row violate this or {named}"
            hint = (
                "they contradict each other or leave almost nothing: loosen one, or narrow the bounds instead"
            )
        return Problem(("constraints", last), message, hint)

    def encode(self, parameters: Parameters) -> NDArray[np.float64]:
        """Return the vector of a point, shape (d,): units in [0, 1], NaN where inactive.

        Raise SearchSpaceError if `parameters` is not a point of the space.
        """
        problems = self.validate(parameters)
        if problems:
            raise SearchSpaceError(problems)
        return self.vector(parameters)

    def vector(self, point: Parameters) -> NDArray[np.float64]:
        """Return what `encode` does, of what is known to be a point of the space."""
        import numpy as np

        vector = np.full(len(self.parameters), np.nan)
        _fill(self._nodes, point, vector)
        return vector

    def decode(self, vector: ArrayLike) -> Parameters:
        """Return the point of a vector of shape (d,); entries outside [0, 1] are moved to its ends.

        Raise ValueError if the shape is wrong or an active entry is NaN.
        """
        import numpy as np

        units = self._units(vector)
        missing = self.active(units) & np.isnan(units)
        if missing.any():
            raise ValueError(f"{self.parameters[int(missing.argmax())].path} is active but NaN in the vector")
        return _build(self._nodes, units.tolist())

    def active(self, vector: ArrayLike) -> NDArray[np.bool_]:
        """Return which parameters the point of a vector has, shape (d,); a NaN choice activates nothing."""
        import numpy as np

        active = np.zeros(len(self.parameters), dtype=bool)
        _mark_active(self._nodes, self._units(vector).tolist(), active)
        return active

    def _units(self, vector: ArrayLike) -> NDArray[np.float64]:
        import numpy as np

        units = np.asarray(vector, dtype=np.float64)
        if units.shape != (len(self.parameters),):
            raise ValueError(f"expected a vector of shape ({len(self.parameters)},), not {units.shape}")
        return np.clip(units, 0.0, 1.0)

    def validate(self, parameters: Any) -> list[Problem]:
        """Return why this is not a point of the space; constraints are left to `violations`."""
        return _faults(self._nodes, parameters)

    def violations(self, parameters: Parameters) -> list[str]:
        """Return the constraints that a point does not meet; one on an inactive parameter is met."""
        return [condition.text for condition in self._conditions if not condition.met(parameters)]


@dataclass(frozen=True, slots=True)
class _Branch:
    """One option of a nested choice: its `_name` and its sub-parameters."""

    label: Any
    nodes: tuple[_Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A parameter in the tree; `index` is its position in the flat list and in a vector."""

    name: str
    index: int
    parameter: Parameter
    unit: UnitMap
    branches: tuple[_Branch, ...]

    def branch_of(self, label: Any) -> _Branch:
        """Return the branch with this `_name`, which must exist."""
        wanted = identity(label)
        return next(branch for branch in self.branches if identity(branch.label) == wanted)


def _grow(parameters: Sequence[Parameter]) -> tuple[_Node, ...]:
    """Return the top-level nodes of parameters that are listed parents first."""
    groups: dict[tuple[int, int] | None, list[_Node]] = {}
    # Children come after their parents, so going backwards every choice finds its branches complete.
    for index in reversed(range(len(parameters))):
        parameter = parameters[index]
        branches = tuple(
            _Branch(label, tuple(reversed(groups.get((index, option), ()))))
            for option, label in enumerate(parameter.options if parameter.nested else ())
        )
        node = _Node(
            name=parameter.name,
            index=index,
            parameter=parameter,
            unit=unit_map(parameter),
            branches=branches,
        )
        groups.setdefault(parameter.parent, []).append(node)
    return tuple(reversed(groups.get(None, ())))


def _build(nodes: tuple[_Node, ...], units: Sequence[float]) -> Parameters:
    """Return the point of the space at these units, which must lie in [0, 1]."""
    point = {}
    for node in nodes:
        value = node.unit.from_unit(units[node.index])
        if node.branches:
            branch = node.branches[value]
            value = {"_name": branch.label, **_build(branch.nodes, units)}
        point[node.name] = value
    return point


def _fill(nodes: tuple[_Node, ...], point: Parameters, vector: NDArray[np.float64]) -> None:
    """Write the units of a valid point into a vector; inactive entries stay unchanged."""
    for node in nodes:
        value = point[node.name]
        if node.branches:
            _fill(node.branch_of(value["_name"]).nodes, value, vector)
            value = value["_name"]
        vector[node.index] = node.unit.to_unit(value)


def _mark_active(nodes: tuple[_Node, ...], vector: Sequence[float], active: NDArray[np.bool_]) -> None:
    """Set `active` for the parameters that a point with these units has; a NaN choice has no branch."""
    for node in nodes:
        active[node.index] = True
        unit = vector[node.index]
        if node.branches and unit == unit:
            _mark_active(node.branches[node.unit.from_unit(unit)].nodes, vector, active)


def _count(nodes: tuple[_Node, ...]) -> int | None:
    """Return the number of distinct points, or None if it is not finite."""
    sizes = [_count_node(node) for node in nodes]
    finite = [size for size in sizes if size is not None]
    return prod(finite) if len(finite) == len(sizes) else None


def _count_node(node: _Node) -> int | None:
    if not node.branches:
        return node.parameter.size
    sizes = [_count(branch.nodes) for branch in node.branches]
    finite = [size for size in sizes if size is not None]
    return sum(finite) if len(finite) == len(sizes) else None


def _faults(
    nodes: tuple[_Node, ...], point: Any, path: JsonPath = (), *, nested: bool = False
) -> list[Problem]:
    """Return why `point` is not a point of the space: what is missing, unknown, or not a possible value."""
    if not isinstance(point, dict):
        return [Problem(path, f"expected an object, not {brief(point)}")]
    known = [node.name for node in nodes]
    problems = [p for node in nodes for p in _faults_of_node(node, point, path)]
    expected = {*known, "_name"} if nested else set(known)
    for name in point:
        if name not in expected:
            problems.append(Problem((*path, str(name)), "there is no such parameter", nearest(name, known)))
    return problems


def _faults_of_node(node: _Node, point: Parameters, path: JsonPath) -> list[Problem]:
    here = (*path, node.name)
    if node.name not in point:
        return [Problem(here, "is missing")]
    value = point[node.name]
    if not node.branches:
        message = node.unit.fault(value)
        return [Problem(here, message)] if message else []
    if not isinstance(value, dict) or "_name" not in value:
        return [Problem(here, f"expected an object with a _name, not {brief(value)}")]
    if message := node.unit.fault(value["_name"]):
        return [Problem((*here, "_name"), message)]
    return _faults(node.branch_of(value["_name"]).nodes, value, here, nested=True)
