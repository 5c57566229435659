"""NSGA: a population that keeps what no other result beats, spread along the front; children of two of its members.

Deb et al., A fast and elitist multiobjective genetic algorithm: NSGA-II, IEEE Transactions on Evolutionary
Computation 6(2), 2002 (ranks, crowding, constraint domination)
Deb and Jain, An Evolutionary Many-Objective Optimization Algorithm Using Reference-Point-Based Nondominated
Sorting Approach, Part I, IEEE Transactions on Evolutionary Computation 18(4), 2014 (NSGA-III: niches)
Das and Dennis, Normal-Boundary Intersection, SIAM Journal on Optimization 8(3), 1998 (directions of the niches)
Deb and Agrawal, Simulated Binary Crossover for Continuous Search Space, Complex Systems 9, 1995
Durillo et al., On the Effect of the Steady-State Selection Scheme in Multi-Objective Genetic Algorithms, EMO 2009
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ..numerics import Bools, Floats, Ints, is_nondominated, nondominated_ranks
from ..plugins import integer, one_of
from .base import Embedding, LearningTuner, ready
from .models import mutants

_PROPOSALS = 50
_MANY_OBJECTIVES = 4  # objectives from which on crowding distances say little
_SPREAD = 5  # of simulated binary crossover: the larger, the nearer are children to their parents
_CHANGES = (1.0, 2.0)  # parameters that a mutation changes
_OTHER_AXES = 1e-6  # the weight of an axis in the search for the extreme point of another
_FLAT = 1e-12  # a range, in units of the largest loss, that is none


class NSGATuner(LearningTuner):
    """Keeps a population of `population_size` results that no other result beats; each child has two parents in it.

    `optimize_mode` is `minimize` or `maximize` with one objective, `niching` is `crowding` (NSGA-II),
    `reference_points` (NSGA-III) or `auto` (those from four objectives on), `seed` an integer of at least 0. The first
    `population_size` suggestions are random; with priors, every second one is drawn from them. As many trials as wanted
    may run at once: the population takes in each result when it arrives. Raises ValueError for other arguments,
    NoMoreTrialError when a finite space is exhausted.

    >>> tuner = NSGATuner(population_size=8, seed=1)
    >>> tuner.update_objectives([{"name": name, "direction": "minimize"} for name in ("near 0", "near 1")])
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(60):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, {"near 0": abs(point["x"]), "near 1": abs(point["x"] - 1)})
    >>> -0.5 < tuner.generate_parameters(60)["x"] < 1.5
    True
    """

    def __init__(
        self,
        optimize_mode: str = "minimize",
        population_size: int = 20,
        niching: str = "auto",
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        self._size = integer("population_size", population_size, 2)
        self._niching = one_of("niching", niching, ("auto", "crowding", "reference_points"))

    def _begin(self) -> None:
        self._embedding = Embedding.of(ready(self._explored).space)
        self._members: list[int] = []  # rows, those before the newest sorted, best first
        points = self._rng.random((self._size if self._prior else 0, self._layout.dimension))
        self._design = iter(self._layout.deactivate(self._prior.mixed(points)))
        goals = len(self._outcomes.goals) if self._outcomes else 1
        has_niches = goals >= _MANY_OBJECTIVES if self._niching == "auto" else self._niching != "crowding"
        self._points = reference_points(goals, self._size) if has_niches and goals > 1 else None

    def _rank_outcomes(self) -> None:
        """Leave the history as it is: only members are ranked."""

    def _settled(self, row: int) -> None:
        """Let a result into the population, which is reduced before the next suggestion, or when there are many."""
        if row in self._members:
            self._members.remove(row)  # its result was replaced
        if math.isfinite(self._history.loss(row)):
            self._members.append(row)
        if len(self._members) >= 2 * self._size:
            self._select()

    def _select(self) -> None:
        """Reduce the population to the best, sorted by front and crowding, infeasible ones last."""
        rows = np.array(self._members, dtype=np.int64)
        losses = self._outcomes.ranking(rows)[1] if self._outcomes else self._losses(rows)
        ranked = rows[np.argsort(losses, kind="stable")]
        self._members = ranked[self._survivors(ranked)].tolist()

    def _losses(self, rows: Ints) -> Floats:
        return np.array([self._history.loss(row) for row in rows.tolist()])

    def _survivors(self, ranked: Ints) -> Ints:
        """Return the places of those that stay."""
        places = np.arange(min(len(ranked), self._size))
        if self._points is None or self._outcomes is None:
            return places
        feasible = ranked[self._outcomes.feasible(ranked)]  # the first ones
        if len(feasible) <= self._size:
            return places
        losses = self._outcomes.losses(feasible)
        ranks = nondominated_ranks(losses)
        last = ranks[self._size - 1]
        kept = niched(
            self._rng, losses[ranks <= last], (ranks < last)[ranks <= last], self._size, self._points
        )
        return np.flatnonzero(kept)

    def _proposals(self) -> Iterator[Floats]:
        if self._history.count < self._size or not self._members:
            yield from itertools.islice(self._design, 1)
            return
        self._select()
        units = self._history.units(np.array(self._members))
        for _ in range(_PROPOSALS):
            child = self._crossed(units[self._parent()], units[self._parent()])
            yield mutants(self._rng, self._embedding, child[None], 1, expected_changes=_CHANGES)[0]

    def _parent(self) -> int:
        """Return the place of the better of two random members; with niches, of any: each one has its own."""
        return int(self._rng.integers(len(self._members), size=1 if self._points is not None else 2).min())

    def _crossed(self, first: Floats, second: Floats) -> Floats:
        """Return a child of two: numbers near those of either (Deb and Agrawal), choices of either; shape (d,)."""
        swapped = self._rng.random(len(first)) < 0.5
        near, far = np.where(swapped, second, first), np.where(swapped, first, second)
        share = self._rng.random(len(first))
        wide = np.where(share < 0.5, 2 * share, 1 / (2 - 2 * share)) ** (1 / (_SPREAD + 1))
        child = np.where(np.isnan(near), far, near)
        both = self._layout.numeric[~np.isnan(near + far)[self._layout.numeric]]
        child[both] = (0.5 * ((1 + wide) * near + (1 - wide) * far))[both]
        return self._layout.deactivate(child[None])[0]


def reference_points(objectives: int, most: int) -> Floats:
    """Return the finest even grid of at most `most` directions, or else the coarsest, shape (h, m).

    >>> reference_points(2, 4).round(2).tolist()
    [[0.0, 1.0], [0.33, 0.67], [0.67, 0.33], [1.0, 0.0]]
    """
    grid = _layers(objectives, 1)
    for divisions in range(2, most):
        finer = _layers(objectives, divisions)
        if len(finer) > most:
            break
        grid = finer
    return grid


def _layers(objectives: int, divisions: int) -> Floats:
    """Return the grid; one too coarse for points inside the simplex gets an inner layer (Deb and Jain, section V)."""
    outer = _lattice(objectives, divisions)
    if divisions >= objectives:
        return outer
    return np.concatenate([outer, (_lattice(objectives, divisions - 1) + 1 / objectives) / 2])


def _lattice(objectives: int, divisions: int) -> Floats:
    bars = list(itertools.combinations(range(objectives + divisions - 1), objectives - 1))
    ends = np.pad(np.array(bars, dtype=np.float64).reshape(-1, objectives - 1), ((0, 0), (1, 1)))
    ends[:, 0], ends[:, -1] = -1.0, objectives + divisions - 1.0
    return (np.diff(ends) - 1) / max(divisions, 1)


def niched(rng: np.random.Generator, losses: Floats, kept: Bools, count: int, points: Floats) -> Bools:
    """Return which of the losses, shape (n, m), to keep: those kept already, and others until there are `count`.

    Others come from the niches with the fewest: the nearest to the direction of an empty one, a random one of another
    (Deb and Jain 2014, algorithm 4).
    """
    niche, distance = _associated(_normalised(losses), points)
    crowd = np.bincount(niche[kept], minlength=len(points))
    kept = kept.copy()
    for _ in range(count - int(kept.sum())):
        candidates = np.flatnonzero(~kept)
        fewest = crowd[niche[candidates]]
        chosen = rng.choice(np.unique(niche[candidates[fewest == fewest.min()]]))
        there = candidates[niche[candidates] == chosen]
        kept[rng.choice(there) if crowd[chosen] else there[np.argmin(distance[there])]] = True
        crowd[chosen] += 1
    return kept


def _normalised(losses: Floats) -> Floats:
    """Return losses with the ideal point at 0 and the intercepts of the front at 1 (Deb and Jain 2014, algorithm 2)."""
    losses = losses / np.maximum(np.abs(losses).max(axis=0), np.finfo(np.float64).tiny)
    moved = losses - losses.min(axis=0)
    front = moved[is_nondominated(losses)]
    worst = np.where((high := front.max(axis=0)) > _FLAT, high, 1.0)
    weights = np.where(np.eye(losses.shape[1]) > 0, 1.0, _OTHER_AXES)
    extremes = front[np.argmin((front[:, None] / weights).max(axis=2), axis=0)]
    try:
        with np.errstate(divide="ignore", over="ignore"):
            intercepts = 1 / np.linalg.solve(extremes / worst, np.ones(len(worst)))
    except np.linalg.LinAlgError:
        return moved / worst
    is_plane = bool(np.isfinite(intercepts).all() and (intercepts > _OTHER_AXES).all())
    return moved / (worst * intercepts if is_plane else worst)


def _associated(scaled: Floats, points: Floats) -> tuple[Ints, Floats]:
    """Return the nearest direction of each point and the distance to it, shape (n,) each (algorithm 3)."""
    directions = points / np.linalg.norm(points, axis=1, keepdims=True)
    along = scaled @ directions.T
    squared = np.maximum((scaled**2).sum(axis=1)[:, None] - along**2, 0.0)
    nearest = np.argmin(squared, axis=1)
    return nearest, np.sqrt(squared[np.arange(len(scaled)), nearest])
