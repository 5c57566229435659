"""Where the next suggestion is looked for: everywhere, in one branch of a choice, or near the best point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .embedding import Embedding
from .layout import Bools, Floats, Layout
from .local_moves import mutants


class Region(Protocol):
    """A part of the search space."""

    def start(self, rng: np.random.Generator, embedding: Embedding, best: Floats) -> Floats:
        """Return candidates to begin with, shape (m, d); `best` are the best points so far, the best first."""
        ...

    def confine(self, rng: np.random.Generator, embedding: Embedding, units: Floats) -> Floats:
        """Move points into the region, in place; returns `units`."""
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

    def confine(self, rng: np.random.Generator, embedding: Embedding, units: Floats) -> Floats:
        """Return the points as they are."""
        return units


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
        return self.confine(rng, embedding, np.concatenate([anywhere, near]))

    def contains(self, layout: Layout, units: Floats) -> Bools:
        """Return which points have the option, shape (m,)."""
        place = np.searchsorted(layout.choices, self.column)
        return layout.codes(units)[:, place] == self.option

    def confine(self, rng: np.random.Generator, embedding: Embedding, units: Floats) -> Floats:
        """Set the choice, and those it is nested in, to the options that lead to the branch; draw what is new there."""
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
    """A box around a point, in its numbers; choices may change."""

    centre: Floats
    radius: float
    around: int = 300

    def start(self, rng: np.random.Generator, embedding: Embedding, best: Floats) -> Floats:
        """Return mutants of the centre inside the box."""
        return self.confine(rng, embedding, mutants(rng, embedding, self.centre[None], self.around))

    def confine(self, rng: np.random.Generator, embedding: Embedding, units: Floats) -> Floats:
        """Move numbers that are active in both to the nearest place in the box."""
        columns = embedding.layout.numeric
        known = ~np.isnan(self.centre[columns])
        middle = np.where(known, self.centre[columns], 0.5)
        reach = np.where(known, self.radius, 1.0)
        units[:, columns] = np.clip(units[:, columns], middle - reach, middle + reach)
        return embedding.snap(units)


def neglected_branch(rng: np.random.Generator, layout: Layout, units: Floats) -> Branch | None:
    """Return a branch for a second look: of a random nested choice, an option the likelier the fewer points have it."""
    parents = np.unique([parent for _, parent, _ in layout.children]).astype(np.int64)
    if not len(parents):
        return None
    column = int(rng.choice(parents))
    place = int(np.searchsorted(layout.choices, column))
    count = int(layout.options[place])
    codes = layout.codes(units)[:, place]
    weights = 1.0 / (1.0 + np.bincount(codes[codes >= 0], minlength=count))
    return Branch(column, int(rng.choice(count, p=weights / weights.sum())))
