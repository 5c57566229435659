"""Evolution: the better of two members of a population, with one of its parameters changed.

Real et al., Large-Scale Evolution of Image Classifiers, ICML 2017 (the method, as NNI has it)
Goldberg and Deb, A Comparative Analysis of Selection Schemes Used in Genetic Algorithms, FOGA 1991 (tournaments)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..numerics import Floats
from ..plugins import integer
from .base import LearningTuner

_PROPOSALS = 50
_LOG_STEP = (-2.0, 0.0)  # powers of ten: of the unit interval


class EvolutionTuner(LearningTuner):
    """Keeps a population of `population_size` results; a child replaces the worse of two random members.

    `optimize_mode` is `maximize` or `minimize`, `seed` an integer of at least 0. The first
    `population_size` suggestions are random. As many trials as wanted may run at once. Raises ValueError for other
    arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = EvolutionTuner("minimize", population_size=8, seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(60):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> abs(tuner.generate_parameters(60)["x"] - 2) < 1.5
    True
    """

    def __init__(
        self, optimize_mode: str = "maximize", population_size: int = 32, seed: int | None = None
    ) -> None:
        super().__init__(optimize_mode, seed)
        self._size = integer("population_size", population_size, 2)

    def _begin(self) -> None:
        self._members: list[int] = []  # rows

    def _settled(self, row: int) -> None:
        """Let a result into the population, in the place of the worse of two members if it is full."""
        if row in self._members or math.isinf(self._history.loss(row)):
            return
        self._members.append(row)
        if len(self._members) > self._size:
            # The newest is not at risk, so that what is learned is not forgotten at once.
            first, second = self._two(len(self._members) - 1)
            worse = first if self._loss_of(first) >= self._loss_of(second) else second
            del self._members[worse]

    def _two(self, count: int) -> tuple[int, int]:
        """Return two different places in the population, or the same twice if there is one member."""
        first = int(self._rng.integers(count))
        return first, (first + 1 + int(self._rng.integers(max(count - 1, 1)))) % count

    def _loss_of(self, place: int) -> float:
        return self._history.loss(self._members[place])

    def _proposals(self) -> Iterator[Floats]:
        if self._history.count < self._size or not self._members:
            return
        first, second = self._two(len(self._members))
        better = first if self._loss_of(first) <= self._loss_of(second) else second
        parent = self._history.units(np.array([self._members[better]]))[0]
        for _ in range(_PROPOSALS):
            yield self._mutated(parent)

    def _mutated(self, parent: Floats) -> Floats:
        """Return a copy with one active parameter changed; what it makes active is drawn at random; shape (d,)."""
        active = np.flatnonzero(~np.isnan(parent))
        column = int(active[self._rng.integers(len(active))])
        child = np.where(np.isnan(parent), self._rng.random(len(parent)), parent)
        numeric = np.flatnonzero(self._layout.numeric == column)
        if not len(numeric):
            options = int(self._layout.options[np.searchsorted(self._layout.choices, column)])
            shift = 1 + int(self._rng.integers(max(options - 1, 1)))
            child[column] = (child[column] + shift / options) % 1.0
            return child
        width = max(10 ** self._rng.uniform(*_LOG_STEP), float(self._layout.cells[numeric[0]]))
        moved = abs(child[column] + width * self._rng.standard_normal()) % 2.0
        child[column] = 2.0 - moved if moved > 1 else moved  # reflected at 0 and 1
        return child
