"""Quasi-random search: points that fill the space more evenly than random ones do.

Sobol', USSR Computational Mathematics and Mathematical Physics 7(4), 1967 (Sobol sequence)
Halton, Numerische Mathematik 2, 1960 (Halton sequence)
McKay, Beckman and Conover, Technometrics 21(2), 1979 (Latin hypercube)
Owen, Scrambled net variance for integrals of smooth functions, Annals of Statistics 25(4), 1997 (scrambling)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..numerics import Floats
from ..plugins import integer, one_of, seed_of
from ..protocol import Parameters
from .base import Explored, latin_hypercube, ready
from .random import RandomTuner

_TRIES = 1000  # points of the sequence that may violate the constraints before a random one is drawn
_BLOCK = 64  # points drawn from a sequence at a time; a power of two keeps Sobol's points balanced


class QMCTuner(RandomTuner):
    """Takes the points of a low-discrepancy sequence in order; results do not matter.

    `sequence` is `sobol`, `halton` or `lhs` (Latin hypercubes of `block` points each, one after the other);
    `scramble` randomises the first two by the seed, without it they are the same for every seed. `optimize_mode`
    is accepted and ignored. Raises ValueError for other arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = QMCTuner("halton", scramble=False)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 8]}})
    >>> [tuner.generate_parameters(i)["x"] for i in range(4)]
    [0.0, 4.0, 2.0, 6.0]
    """

    learns = False

    def __init__(
        self,
        sequence: str = "sobol",
        scramble: bool = True,
        block: int = 64,
        seed: int | None = None,
        optimize_mode: str | None = None,
    ) -> None:
        super().__init__(seed_of(seed), optimize_mode)
        self._sequence = str(one_of("sequence", sequence, ("sobol", "halton", "lhs")))
        self._scramble = bool(one_of("scramble", scramble, (True, False)))
        self._block = integer("block", block, 2)

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space and begin its sequence; points of an earlier one are not suggested again."""
        super().update_search_space(search_space)
        dimension = len(ready(self._explored).space.parameters)
        self._points = _Points(self._sequence, dimension, self._scramble, self._block, self._rng)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Parameters:
        """Return the next point of the sequence that is new and meets the constraints."""
        explored = ready(self._explored)
        return explored.new_point(lambda: self._next_allowed(explored))

    def _next_allowed(self, explored: Explored) -> Parameters:
        for _ in range(_TRIES):
            point = explored.space.decode(next(self._points))
            if not explored.space.violations(point):
                return point
        return explored.space.sample(self._rng)


class _Points(Iterator[Floats]):
    """The points of a sequence, each of shape (dimension,); a pickled one continues where it was."""

    def __init__(
        self, sequence: str, dimension: int, scramble: bool, block: int, rng: np.random.Generator
    ) -> None:
        self._sequence, self._dimension, self._scramble = sequence, dimension, scramble
        self._block = block if sequence == "lhs" else _BLOCK
        self._rng = rng
        self._seed = int(rng.integers(2**32))
        self._given = 0
        self._ahead: Floats = np.empty((0, dimension))

    def __next__(self) -> Floats:
        place = self._given % self._block
        if place == 0:
            self._ahead = self._draw()
        self._given += 1
        return self._ahead[place]

    def _draw(self) -> Floats:
        """Return the next points of the sequence; every call makes an engine, so that none is pickled."""
        if self._sequence == "lhs":
            return latin_hypercube(self._rng, self._block, self._dimension)
        from scipy.stats import qmc

        engines = {"sobol": qmc.Sobol, "halton": qmc.Halton}
        with warnings.catch_warnings():
            # Every supported scipy has `seed`; the newest deprecate it.
            warnings.simplefilter("ignore", DeprecationWarning)
            engine = engines[self._sequence](self._dimension, scramble=self._scramble, seed=self._seed)
        if self._given:
            engine.fast_forward(self._given)
        return engine.random(self._block)
