"""Where to search for the next suggestion: everywhere, in one branch of a choice, or near the best point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...numerics import Bools, Floats
from ..base import Embedding, Layout
from .mutation import mutants


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
