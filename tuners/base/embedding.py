"""The unit cube of a search space: its columns, and the map to features whose distances a Gaussian process can use.

A number is its place in the unit interval, or the middle if it is inactive; a choice is a corner of a simplex, or the
origin if it is inactive. Distances are Euclidean, so any radial kernel is positive definite; a distance "only where
both are active" would not allow that. A simplex of very many corners is projected at random, which hardly changes its
distances. A choice between numbers also has a coordinate on a line. Parameters of one name in different branches of a
choice are never active together: they share one coordinate. Where several choices have the same options, as the layers
of a network, it also counts how often each option is chosen.

Achlioptas, Database-friendly random projections, PODS 2001 (signs)
Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014 (their bits: no table is kept)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...numerics import Floats, Ints
from ...search_space import Parameter, SearchSpace, UnitMap, unit_map

_LARGEST_TABLE = 4096  # values of a parameter; a parameter with more is treated as continuous
_CORNER = 0.5**0.5  # so that two options are at distance 1
_FEWEST = 3  # choices with the same options, and options of each: switches have little in common
_STEP = 1e-12
_MOST_CORNERS = 1000  # options of a choice
_SIGNS = 256  # of an option among more


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Columns of the unit cube of a space with d parameters, p of them numeric and c choices.

    `cells` is the width of a value of each numeric column, 0 where continuous; `options` the number of
    options of each choice; `children` lists (column, column of its parent, option of the parent), parents
    first.
    """

    dimension: int
    numeric: Ints
    cells: Floats
    choices: Ints
    options: Ints
    children: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, space: SearchSpace) -> Layout:
        """Return the layout of a space."""
        parameters = space.parameters
        numeric = [i for i, p in enumerate(parameters) if not p.categorical]
        choices = [i for i, p in enumerate(parameters) if p.categorical]
        sizes = [parameters[i].size for i in numeric]
        return cls(
            dimension=len(parameters),
            numeric=np.array(numeric, dtype=np.int64),
            cells=np.array([1 / size if size else 0.0 for size in sizes]),
            choices=np.array(choices, dtype=np.int64),
            options=np.array([len(parameters[i].options) for i in choices], dtype=np.int64),
            children=tuple((i, *p.parent) for i, p in enumerate(parameters) if p.parent is not None),
        )

    def deactivate(self, units: Floats) -> Floats:
        """Set inactive parameters in `units`, shape (m, d), to NaN, in place; return `units`."""
        for column, parent, option in self.children:
            count = self.options[np.searchsorted(self.choices, parent)]
            with np.errstate(invalid="ignore"):
                chosen = np.floor(units[:, parent] * count)
            units[chosen != option, column] = np.nan
        return units

    def codes(self, units: Floats) -> Ints:
        """Return the option index of each choice, -1 where inactive; shape (m, c)."""
        scaled = units[:, self.choices] * self.options
        scaled[np.isnan(scaled)] = -1.0
        return np.floor(scaled).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Embedding:
    """The map from units, shape (m, d) with NaN where inactive, to features, shape (m, f).

    `groups` is the length-scale of each feature, out of `scales`. `edges` are, for each discrete
    numeric parameter, the units at which its value changes.
    """

    layout: Layout
    edges: tuple[Floats | None, ...]
    groups: Ints
    scales: int
    lines: tuple[tuple[int, int, Floats], ...]  # of ordered choices: column, feature, place of each option
    numbers: tuple[tuple[int, int], ...]  # column, feature
    corners: tuple[tuple[int, int, int], ...]  # column, first feature, number of options
    counts: tuple[tuple[int, int, int, float], ...]  # of choices alike: as `corners`, and what one adds

    @classmethod
    def of(cls, space: SearchSpace, *, ordered_choices: bool = True, shared_names: bool = True) -> Embedding:
        """Return the embedding of a space."""
        parameters = space.parameters
        layout = Layout.of(space)
        features: list[int] = []  # the length-scale of each
        scale_of: dict[Any, int] = {}
        numbers, lines, corners = [], [], []
        first_of: dict[Any, int] = {}

        def place(key: Any, width: int) -> int:
            """Return the first feature of a key, new ones if it has none."""
            if key not in first_of:
                first_of[key] = len(features)
                features.extend([scale_of.setdefault(key, len(scale_of))] * width)
            return first_of[key]

        for i, parameter in enumerate(parameters):
            key = _shared_key(parameter) if shared_names and parameter.parent is not None else (i,)
            if parameter.ordered:
                numbers.append((i, place(("number", *key), 1)))
                continue
            count = len(parameter.options)
            corners.append((i, place(("corner", *key, repr(parameter.options)), _width(count)), count))
            if ordered_choices and _are_numbers(parameter.options):
                places = np.argsort(np.argsort(parameter.options)) / (count - 1)
                lines.append((i, place(("line", *key, repr(parameter.options)), 1), places))
        counts = []
        for alike in _alike(parameters):
            count = len(parameters[alike[0]].options)
            first, size = place(("count", alike[0]), _width(count)), _CORNER / math.sqrt(len(alike))
            counts += [(i, first, count, size) for i in alike]
        return cls(
            layout=layout,
            edges=tuple(_edges(p) if p.ordered else None for p in parameters),
            groups=np.array(features, dtype=np.int64),
            scales=len(scale_of),
            lines=tuple(lines),
            numbers=tuple(numbers),
            corners=tuple(corners),
            counts=tuple(counts),
        )

    def features(self, units: Floats) -> Floats:
        """Return the features of points, shape (m, f)."""
        result = np.zeros((len(units), len(self.groups)))
        active = ~np.isnan(units)
        centred = np.where(active, units - 0.5, 0.0)
        for column, feature in self.numbers:
            result[:, feature] += centred[:, column]

        def chosen(column: int, count: int) -> tuple[Ints, Ints]:
            """Return the points where a choice is active, and the numbers of their options."""
            points = np.flatnonzero(active[:, column])
            return points, np.minimum((units[points, column] * count).astype(np.int64), count - 1)

        for column, first, count, size in (*((*corner, _CORNER) for corner in self.corners), *self.counts):
            points, options = chosen(column, count)
            if count <= _MOST_CORNERS:
                result[points, first + options] += size
            else:
                result[points, first : first + _SIGNS] += size * _signs(options)
        for column, feature, places in self.lines:
            points, options = chosen(column, len(places))
            result[points, feature] = places[options] - 0.5
        return result

    def snap(self, units: Floats) -> Floats:
        """Move discrete parameters to the middle of the interval of their value, in place; returns `units`."""
        for column, edges in enumerate(self.edges):
            if edges is not None:
                values = units[:, column]
                cell = np.clip(np.searchsorted(edges, values, "right") - 1, 0, len(edges) - 2)
                middle = 0.5 * (edges[cell] + edges[cell + 1])
                units[:, column] = np.where(np.isnan(values), np.nan, middle)
        for column, count in zip(self.layout.choices, self.layout.options, strict=True):
            values = units[:, column]
            units[:, column] = (np.minimum(np.floor(values * count), count - 1) + 0.5) / count
        return self.layout.deactivate(units)


def _width(count: int) -> int:
    """Return how many features a choice of so many options has."""
    return count if count <= _MOST_CORNERS else _SIGNS


def _signs(options: Ints) -> Floats:
    """Return a vector of length 1 for each option, shape (n, 256), of random signs: any two are nearly orthogonal."""
    words = _SIGNS // 64
    place = (options[:, None] * words + np.arange(words)).astype(np.uint64)
    bits = (place + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    signs = 2 * np.unpackbits(bits.view(np.uint8), axis=1).astype(np.float64) - 1
    return signs / math.sqrt(_SIGNS)


def _shared_key(parameter: Parameter) -> tuple[Any, ...]:
    """Return a key that parameters of the same name in sibling branches share."""
    path = tuple(part for part in parameter.key if isinstance(part, str))
    return path, parameter.type


def _alike(parameters: Sequence[Parameter]) -> list[list[int]]:
    """Return the numbers of the parameters in each group of choices side by side with the same options, not numbers."""
    groups = dict[Any, list[int]]()
    for i, parameter in enumerate(parameters):
        if len(parameter.options) >= _FEWEST and not parameter.nested and not _are_numbers(parameter.options):
            groups.setdefault((parameter.parent, repr(parameter.options)), []).append(i)
    return [group for group in groups.values() if len(group) >= _FEWEST]


def _are_numbers(options: tuple[Any, ...]) -> bool:
    plain = all(isinstance(option, int | float) and not isinstance(option, bool) for option in options)
    return plain and len(options) > 2


def _edges(parameter: Parameter) -> Floats | None:
    """Return the units at which the value changes, from 0 to 1; None for a continuous parameter."""
    if parameter.size is None and parameter.q is None:
        return None
    if parameter.even:
        count = parameter.size or 1
        return np.linspace(0, 1, count + 1) if count <= _LARGEST_TABLE else None
    edges = [0.0]
    for edge in _walk(unit_map(parameter)):
        edges.append(edge)
        if len(edges) > _LARGEST_TABLE:
            return None
    edges[-1] = 1.0
    return np.array(edges)


def _walk(unit: UnitMap) -> Iterator[float]:
    """Yield the upper end of the interval of each value, lowest first: a value is encoded as the middle of its own."""
    edge = 0.0
    while edge < 1 - 1e-9:
        middle = unit.to_unit(unit.from_unit(edge + _STEP))
        edge = max(2 * middle - edge, edge + _STEP)
        yield edge
