"""CMA-ES: a normal distribution that moves, stretches and shrinks towards where results are good.

    Hansen, The CMA Evolution Strategy: A Tutorial, arXiv 1604.00772, 2016 (numbers without a step)
    Hamano et al., CatCMA with Margin, GECCO 2025 (numbers with a step, and choices)
    Auger and Hansen, A Restart CMA Evolution Strategy With Increasing Population Size, CEC 2005 (restarts)

The strategies are those of the package `cmaes`. All parameters of a nested space take part, active or not: what is
inactive is drawn and has no effect, so its distribution changes by chance only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics import Floats
from ..plugins import integer, one_of, positive
from ..search_space import SearchSpace
from .base import Embedding, Layout, LearningTuner, ready

_PROPOSALS = 50
_MOST_VALUES = 500  # of a parameter with a step; with more, it is as good as continuous
_INCREASE = 2  # Auger and Hansen 2005: the population doubles with every restart
_TIE = 1e-14  # between equal results, as the package does not take a generation of equals


class CMAESTuner(LearningTuner):
    """Adapts a distribution over the unit cube from generation to generation.

    `optimize_mode` is `minimize` or `maximize`, `seed` an integer of at least 0. `population_size` is the
    number of results in a generation (None: by the dimension, 4 + 3 log d), `sigma` the first standard deviation as
    a part of each range. With `restart` `ipop`, a converged search starts over with twice the population; with None
    it continues. Any number of trials may run at once: results count in the order they come. Raises
    ValueError for other arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = CMAESTuner(seed=1)
    >>> tuner.update_search_space({name: {"_type": "uniform", "_value": [-5, 5]} for name in "xy"})
    >>> for i in range(100):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2 + point["y"] ** 2)
    >>> abs(tuner.generate_parameters(100)["x"] - 2) < 1
    True
    """

    def __init__(
        self,
        optimize_mode: str = "minimize",
        population_size: int | None = None,
        sigma: float = 0.2,
        restart: str | None = "ipop",
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        self._size = None if population_size is None else integer("population_size", population_size, 2)
        self._sigma = positive("sigma", sigma)
        self._restart: str | None = one_of("restart", restart, ("ipop", None))

    def _begin(self) -> None:
        self._axes = _Axes.of(ready(self._explored).space, self._layout)
        self._strategy: _Strategy | None = None
        self._asked: Any = None
        # By row: the number of the search, and the solution there.
        self._solutions: dict[int, tuple[int, Any]] = {}
        self._generation: list[tuple[Any, float]] = []
        self._known: dict[Hashable, float] = {}  # losses by point
        self._searches = 0

    def _proposals(self) -> Iterator[Floats]:
        """Yield draws; a draw whose result is known counts with that result."""
        if self._axes.dimension:
            for _ in range(_PROPOSALS):
                strategy = self._current()
                self._asked = strategy.ask(self._rng)
                vector = self._axes.vector(self._asked)
                yield vector
                loss = self._known.get(self._key(vector))
                if loss is not None:
                    self._learn(self._asked, loss)
        self._asked = None

    def _key(self, vector: Floats) -> Hashable:
        explored = ready(self._explored)
        return explored.key(explored.space.decode(vector))

    def _current(self) -> _Strategy:
        if self._strategy is None:
            self._strategy = _Strategy(self._axes, self._start(), self._sigma, self._size)
        return self._strategy

    def _start(self) -> Floats:
        """Return where a search begins: at the best result if there is one, else in the middle; later anywhere."""
        if self._searches:
            return self._rng.random(self._layout.dimension)
        middle = np.full(self._layout.dimension, 0.5)
        if not self._history.successes:
            return middle
        best = self._history.units(self._history.ranked[:1])[0]
        return np.where(np.isnan(best), middle, best)

    def _suggested(self, parameter_id: int, row: int) -> None:
        if self._asked is not None:
            self._solutions[row] = self._searches, self._asked

    def _settled(self, row: int) -> None:
        loss = self._history.loss(row)
        self._known[self._key(self._history.units(np.array([row]))[0])] = loss
        search, solution = self._solutions.pop(row, (-1, None))
        if search == self._searches:
            self._learn(solution, loss)

    def _learn(self, solution: Any, loss: float) -> None:
        """Count a result; the last of a generation moves the distribution."""
        self._generation.append((solution, loss))
        strategy = self._current()
        if len(self._generation) < strategy.population_size:
            return
        strategy.tell(self._generation)
        self._generation = []
        if self._restart and strategy.converged():
            self._searches += 1
            size = _INCREASE * strategy.population_size
            self._strategy = _Strategy(self._axes, self._start(), self._sigma, size)


@dataclass(frozen=True, slots=True)
class _Axes:
    """How a strategy sees each column of the unit cube: as a range, as ordered values, or as unordered ones.

    `stepped` and `choices` hold columns and the places of their values in the unit interval.
    """

    columns: int
    continuous: tuple[int, ...]
    stepped: tuple[tuple[int, Floats], ...]
    choices: tuple[tuple[int, Floats], ...]

    @classmethod
    def of(cls, space: SearchSpace, layout: Layout) -> _Axes:
        """Return the axes of a space; a parameter with a single value has none."""
        places: list[Floats | None] = [
            None if edges is None or len(edges) > _MOST_VALUES else 0.5 * (edges[1:] + edges[:-1])
            for edges in Embedding.of(space).edges
        ]
        options = dict(zip(layout.choices.tolist(), layout.options.tolist(), strict=True))
        for column, count in options.items():
            places[column] = (np.arange(count) + 0.5) / count
        discrete = [(i, values) for i, values in enumerate(places) if values is not None]
        # Two values have no order to speak of.
        unordered = [
            (i, values) for i, values in discrete if len(values) == 2 or (i in options and len(values) > 1)
        ]
        ordered = [(i, values) for i, values in discrete if len(values) > 2 and i not in options]
        continuous = [i for i, values in enumerate(places) if values is None]
        return cls(len(places), tuple(continuous), tuple(ordered), tuple(unordered))

    @property
    def dimension(self) -> int:
        """How many there are."""
        return len(self.continuous) + len(self.stepped) + len(self.choices)

    def means(self, units: Floats) -> Floats:
        """Return the entries of a vector of units that a normal distribution is about."""
        return units[[*self.continuous, *(column for column, _ in self.stepped)]]

    def vector(self, solution: Any) -> Floats:
        """Return a solution as units, shape (d,)."""
        units = np.full(self.columns, 0.5)
        if isinstance(solution, np.ndarray):
            units[list(self.continuous)] = solution
            return units
        if self.continuous:
            units[list(self.continuous)] = solution.x
        for i, (column, _) in enumerate(self.stepped):
            units[column] = solution.z[i]
        for i, (column, places) in enumerate(self.choices):
            units[column] = places[int(np.argmax(solution.c[i]))]
        return units


class _Strategy:
    """A strategy of the package `cmaes` that takes its random numbers from ours, and pickles without a loss."""

    def __init__(self, axes: _Axes, start: Floats, sigma: float, size: int | None) -> None:
        import cmaes

        mean = np.clip(axes.means(start), 0.0, 1.0)
        self._normal = len(mean) > 0
        self._inner: Any
        if len(mean) == len(axes.continuous) == axes.dimension > 1:
            bounds = np.tile([0.0, 1.0], (len(mean), 1))
            self._inner = cmaes.CMA(mean, sigma, bounds, population_size=size)
            return
        self._inner = cmaes.CatCMAwM(
            x_space=[[0.0, 1.0]] * len(axes.continuous) or None,
            z_space=[values.tolist() for _, values in axes.stepped] or None,
            c_space=[len(values) for _, values in axes.choices] or None,
            population_size=size,
            mean=mean if self._normal else None,
            sigma=sigma,
            cov=np.eye(len(mean)) if self._normal else None,
        )

    @property
    def population_size(self) -> int:
        """How many results make a generation."""
        return int(self._inner.population_size)

    def ask(self, rng: np.random.Generator) -> Any:
        """Return a draw from the distribution."""
        self._inner.reseed_rng(int(rng.integers(2**32)))
        return self._inner.ask()

    def tell(self, generation: list[tuple[Any, float]]) -> None:
        """Move the distribution; only the order of the losses counts, so they may be of any size."""
        places = np.unique([loss for _, loss in generation], return_inverse=True)[1]
        ranks = places + _TIE * np.arange(len(generation))
        self._inner.tell(
            [(solution, float(rank)) for (solution, _), rank in zip(generation, ranks, strict=True)]
        )

    def converged(self) -> bool:
        """Return whether the search has converged."""
        return self._normal and bool(self._inner.should_stop())

    def __getstate__(self) -> dict[str, Any]:
        # The package leaves out the random state and rounds the covariance, which would change what comes next.
        inner = {name: value for name, value in vars(self._inner).items() if name != "_rng"}
        return {"class": type(self._inner), "inner": inner, "normal": self._normal}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._normal = state["normal"]
        self._inner = state["class"].__new__(state["class"])
        vars(self._inner).update(state["inner"], _rng=np.random.RandomState(0))
