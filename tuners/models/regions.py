"""The search for the point with the highest score: hill-climbing everywhere, in a branch, or near the best point.

There are many points at first, then changes of the best of them: spaces of choices, integers and branches have no
gradients; for numbers the steps become small enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...numerics import Bools, Floats
from ..base import Embedding, Layout

_KEPT, _CLIMBERS, _CHANGES = 40, 8, 20
_EXPECTED_CHANGES = (1.0, 2.0, 4.0, 100.0)
_LOG_STEPS = (-2.3, -0.3)  # powers of ten, of the unit interval


def climb(
    rng: np.random.Generator,
    embedding: Embedding,
    region: Region,
    score: Callable[[Floats], Floats],
    best: Floats,
    rounds: int,
) -> Floats:
    """Return points of the region, shape (m, d), those with the highest score first.

    `best` are the best points so far, shape (k, d); each round changes the leading candidates.
    """
    units = region.start(rng, embedding, best)
    scores = score(units)
    for _ in range(rounds):
        top = np.argsort(-scores, kind="stable")[:_KEPT]
        units, scores = units[top], scores[top]
        changed = region.change(rng, embedding, units[:_CLIMBERS], _CHANGES)
        units, scores = np.concatenate([units, changed]), np.concatenate([scores, score(changed)])
    return units[np.argsort(-scores, kind="stable")]


class Region(Protocol):
    """A part of the search space."""

    def start(self, rng: np.random.Generator, embedding: Embedding, best: Floats) -> Floats:
        """Return initial candidates, shape (m, d); `best` are the best points so far, best first."""
        ...

    def change(self, rng: np.random.Generator, embedding: Embedding, units: Floats, count: int) -> Floats:
        """Return `count` changes of each point, shape (m count, d), that are in the region."""
        ...


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The whole space: random points, and changes of the best ones."""

    random: int = 400
    around: int = 360

    def start(self, rng: np.random.Generator, embedding: Embedding, best: Floats) -> Floats:
        """Return random points and mutants of the best."""
        anywhere = embedding.snap(rng.random((self.random, embedding.layout.dimension)))
        return np.concatenate([anywhere, mutants(rng, embedding, best, self.around // len(best))])

    def change(self, rng: np.random.Generator, embedding: Embedding, units: Floats, count: int) -> Floats:
        """Return mutants."""
        return mutants(rng, embedding, units, count)


@dataclass(frozen=True, slots=True)
class Branch:
    """The points with one option of one choice, whatever that choice is nested in."""

    column: int
    option: int
    random: int = 300
    around: int = 200

    def start(self, rng: np.random.Generator, embedding: Embedding, best: Floats) -> Floats:
        """Return random points of the branch, and the best ones and their mutants moved to it."""
        anywhere = rng.random((self.random, embedding.layout.dimension))
        near = mutants(rng, embedding, best, self.around // len(best))
        return self._confined(rng, embedding, np.concatenate([anywhere, near]))

    def change(self, rng: np.random.Generator, embedding: Embedding, units: Floats, count: int) -> Floats:
        """Return mutants that keep the option."""
        return self._confined(rng, embedding, mutants(rng, embedding, units, count))

    def contains(self, layout: Layout, units: Floats) -> Bools:
        """Return which points have the option, shape (m,)."""
        place = np.searchsorted(layout.choices, self.column)
        return layout.codes(units)[:, place] == self.option

    def _confined(self, rng: np.random.Generator, embedding: Embedding, units: Floats) -> Floats:
        """Set the choice, and those it is nested in, to the options that lead to the branch; draw new children."""
        layout = embedding.layout
        inactive = np.isnan(units)
        units[inactive] = rng.random(int(inactive.sum()))
        parents = {column: (parent, option) for column, parent, option in layout.children}
        column, option = self.column, self.option
        while True:
            count = layout.options[np.searchsorted(layout.choices, column)]
            units[:, column] = (option + 0.5) / count
            if column not in parents:
                return embedding.snap(units)
            column, option = parents[column]


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A box around a point, in its numbers; choices may change.

    `axes` (p, p) has the directions in which the good points near it lie as columns, the longest of length 1: half the
    steps go along them, to follow valleys, as in CMA-ES (Hansen, The CMA Evolution Strategy: A Tutorial, 2016).
    """

    centre: Floats
    radius: float
    axes: Floats
    around: int = 300

    def start(self, rng: np.random.Generator, embedding: Embedding, best: Floats) -> Floats:
        """Return changes of the centre."""
        return self.change(rng, embedding, self.centre[None], self.around)

    def change(self, rng: np.random.Generator, embedding: Embedding, units: Floats, count: int) -> Floats:
        """Return mutants inside the box, and steps along the axes."""
        reach = math.log10(self.radius)
        changed = mutants(rng, embedding, units, count, (reach - 1.5, reach))
        columns = embedding.layout.numeric
        along = np.repeat(units, count, axis=0)
        width = 10 ** rng.uniform(reach - 1.5, reach, (len(along), 1))
        along[:, columns] += width * (rng.standard_normal((len(along), len(columns))) @ self.axes.T)
        straight = rng.random(len(along)) < 0.5
        changed[straight] = along[straight]
        return self._confined(embedding, changed)

    def _confined(self, embedding: Embedding, units: Floats) -> Floats:
        """Move numbers that are active in both into the box."""
        columns = embedding.layout.numeric
        known = ~np.isnan(self.centre[columns])
        middle = np.where(known, self.centre[columns], 0.5)
        reach = np.where(known, self.radius, 1.0)
        inside = np.clip(units[:, columns], middle - reach, middle + reach)
        units[:, columns] = np.clip(inside, 0.0, 1.0)
        return embedding.snap(units)


def principal_axes(embedding: Embedding, units: Floats) -> Floats:
    """Return the directions in which points lie, (p, p), as columns; the longest has length 1."""
    numbers = np.where(np.isnan(units), 0.5, units)[:, embedding.layout.numeric]
    if numbers.shape[1] < 2 or len(numbers) < 2 * numbers.shape[1]:
        return np.eye(numbers.shape[1])
    variances, directions = np.linalg.eigh(np.cov(numbers, rowvar=False))
    lengths = np.sqrt(np.maximum(variances, 0.0))
    return directions * np.maximum(lengths / max(lengths[-1], 1e-12), 1e-3)


def neglected_branch(
    rng: np.random.Generator, layout: Layout, units: Floats, *, nested_only: bool = False
) -> Branch | None:
    """Return a branch to search again: an option of a random choice, more likely the fewer points have it.

    Choices between two options are left to the model, unless something is nested in them; None without any other.
    """
    parents = {parent for _, parent, _ in layout.children}
    many = layout.choices[layout.options > 2]
    columns = sorted(parents if nested_only else parents.union(many.tolist()))
    if not columns:
        return None
    column = int(rng.choice(columns))
    place = int(np.searchsorted(layout.choices, column))
    count = int(layout.options[place])
    codes = layout.codes(units)[:, place]
    weights = 1.0 / (1.0 + np.bincount(codes[codes >= 0], minlength=count))
    return Branch(column, int(rng.choice(count, p=weights / weights.sum())))


def mutants(
    rng: np.random.Generator,
    embedding: Embedding,
    points: Floats,
    count: int,
    log_steps: tuple[float, float] = _LOG_STEPS,
    expected_changes: Sequence[float] = _EXPECTED_CHANGES,
) -> Floats:
    """Return `count` changed copies of each point, shape (m count, d), NaN where inactive.

    At least one parameter changes, on average one of the `expected_changes`: a number by a normal step, at least to the
    next value, whose width is a power of ten with an exponent between the `log_steps`; a choice to another option, or
    to a neighbouring one if ordered. The children of a changed choice are drawn at random.
    """
    units = np.repeat(points, count, axis=0)
    inactive = np.isnan(units)
    units[inactive] = rng.random(int(inactive.sum()))
    changed = _columns_to_change(rng, ~inactive, expected_changes)
    before = units.copy()
    _move_numbers(rng, embedding, units, changed, log_steps)
    _move_choices(rng, embedding, units, changed)
    embedding.snap(units)
    _leave_the_cell(rng, embedding, units, before, changed)
    return units


def _columns_to_change(rng: np.random.Generator, active: Bools, expected_changes: Sequence[float]) -> Bools:
    rows = len(active)
    wanted = rng.choice(expected_changes, rows)
    probability = np.minimum(wanted / np.maximum(active.sum(axis=1), 1), 1.0)
    changed = (rng.random(active.shape) < probability[:, None]) & active
    column = np.argmax(rng.random(active.shape) * active, axis=1)
    changed[np.arange(rows), column] = True
    return changed


def _move_numbers(
    rng: np.random.Generator,
    embedding: Embedding,
    units: Floats,
    changed: Bools,
    log_steps: tuple[float, float],
) -> None:
    columns = embedding.layout.numeric
    width = 10 ** rng.uniform(*log_steps, (len(units), 1))
    step = rng.standard_normal((len(units), len(columns))) * width
    moved = np.abs(units[:, columns] + np.where(changed[:, columns], step, 0.0))  # reflected at 0 ...
    units[:, columns] = np.clip(np.where(moved > 1, 2 - moved, moved), 0.0, 1.0)  # ... and at 1


def _move_choices(rng: np.random.Generator, embedding: Embedding, units: Floats, changed: Bools) -> None:
    columns, options = embedding.layout.choices, embedding.layout.options
    if not len(columns):
        return
    code = np.minimum((units[:, columns] * options).astype(np.int64), options - 1)
    other = (code + 1 + (rng.random(code.shape) * (options - 1)).astype(np.int64)) % options
    units[:, columns] = (np.where(changed[:, columns], other, code) + 0.5) / options
    for column, _, places in embedding.lines:
        step = changed[:, column] & (rng.random(len(units)) < 0.5)
        place = np.argsort(places)
        index = np.searchsorted(columns, column)
        rank = np.round(places[code[:, index]] * (len(places) - 1)).astype(np.int64)
        near = np.clip(rank + np.where(rng.random(len(units)) < 0.5, 1, -1), 0, len(places) - 1)
        units[step, column] = (place[near[step]] + 0.5) / len(places)


def _leave_the_cell(
    rng: np.random.Generator, embedding: Embedding, units: Floats, before: Floats, changed: Bools
) -> None:
    """Move discrete numbers that a step left where they were to the next value."""
    for column, edges in enumerate(embedding.edges):
        if edges is None or len(edges) < 3:
            continue
        stuck = np.flatnonzero(changed[:, column] & (np.abs(units[:, column] - before[:, column]) < 1e-9))
        if not len(stuck):
            continue
        cell = np.searchsorted(edges, units[stuck, column], "right") - 1
        step = np.where(rng.random(len(stuck)) < 0.5, 1, -1)
        target = cell + step
        target = np.where((target < 0) | (target > len(edges) - 2), cell - step, target)
        units[stuck, column] = 0.5 * (edges[target] + edges[target + 1])
