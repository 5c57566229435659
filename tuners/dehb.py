"""DEHB: Hyperband whose configurations evolve, one population per budget, from the best on the budget below.

Awad, Mallik and Hutter, DEHB: Evolutionary Hyperband for Scalable, Robust and Efficient Hyperparameter Optimization,
IJCAI 2021. Differential evolution: Storn and Price, Journal of Global Optimization 11, 1997 (rand/1/bin).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..numerics import Floats
from ..plugins import integer, number
from ..protocol import Parameters, rounded
from .base import Member, ScheduledTuner, ready
from .hyperband import bracket_plan, halvings

_TRIES = 50  # offspring looked at for one that is new and meets the constraints


@dataclass(slots=True)
class _Population:
    """The best that was found on a budget: vectors, (n, d), their losses, and whose turn it is to be challenged."""

    vectors: Floats
    losses: Floats
    turn: int = 0

    def next_target(self) -> int:
        self.turn = (self.turn + 1) % len(self.losses)
        return self.turn

    def best(self, count: int) -> Floats:
        """Return the vectors of the best that have a loss, at most `count` of them."""
        order = np.argsort(self.losses, kind="stable")[:count]
        return self.vectors[order[self.losses[order] < math.inf]]


@dataclass(slots=True, eq=False, kw_only=True)
class _Bracket:
    """Successive halving: sizes and budgets of its rungs, the rung that it is at, and who was made for that."""

    sizes: list[int]
    levels: list[int]
    is_first: bool
    rung: int = 0
    made: list[_Challenger] = field(default_factory=list)

    @property
    def wants_more(self) -> bool:
        return len(self.made) < self.sizes[self.rung]


@dataclass(slots=True, eq=False, kw_only=True)
class _Challenger(Member):
    """A member with its vector, its budget level, and the target it may replace there; `age` is that of the space."""

    bracket: _Bracket
    level: int
    vector: Floats
    target_index: int
    age: int


class DEHBTuner(ScheduledTuner[_Challenger]):
    """Hyperband with evolution: a configuration is bred from the best on the budget below, and replaces a worse one.

    Budgets go from `min_budget` to `max_budget` intermediate results by factors of `eta`. The first bracket is
    random and halves as in Hyperband, continuing from checkpoints. In others every rung gets new configurations: a +
    `mutation_factor` (b - c) for three of the best of the budget below, crossed with a member of the population of
    its own budget with probability `crossover_prob` for each parameter. Raises ValueError for other arguments.

    >>> tuner = DEHBTuner(max_budget=9, seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    >>> [tuner.generate_parameters(i).budget for i in range(12)]
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3]
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        min_budget: int = 1,
        max_budget: int = 27,
        eta: int = 3,
        mutation_factor: float = 0.5,
        crossover_prob: float = 0.5,
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed)
        least = integer("min_budget", min_budget, 1)
        self._R, self._eta = integer("max_budget", max_budget, least), integer("eta", eta, 2)
        self._s_max = halvings(self._R / least, self._eta)
        self._factor = number("mutation_factor", mutation_factor, 0, 1)
        self._crossover = number("crossover_prob", crossover_prob, 0, 1)
        self._plans = [bracket_plan(s, self._s_max, self._R, self._eta) for s in range(self._s_max + 1)]
        self._brackets: list[_Bracket] = []  # those that are not over
        self._opened = 0
        self._age = 0

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space; populations start over, and results of the old space do not enter them."""
        super().update_search_space(search_space)
        self._age += 1
        self._populations = [self._new_population(level) for level in range(self._s_max + 1)]

    def _new_population(self, level: int) -> _Population:
        """Return as many random vectors as the largest rung on this budget, none of them measured."""
        below = self._s_max - level
        size = max(plan[0][-1 - below] for plan in self._plans if len(plan[0]) > below)
        dimension = len(ready(self._explored).space.parameters)
        return _Population(self._rng.random((size, dimension)), np.full(size, math.inf))

    def _compare_now(self) -> None:
        """Let the first bracket continue with the members that it has, if it is still filling."""
        for bracket in list(self._brackets):
            if bracket.is_first and bracket.rung == 0 and bracket.wants_more and bracket.made:
                count = len(bracket.made)
                bracket.sizes = [max(1, count // self._eta**i) for i in range(len(bracket.sizes))]
            self._look_at(bracket)

    def _new_member(self) -> _Challenger:
        bracket = next((each for each in self._brackets if each.wants_more), None)
        if bracket is None:
            s = self._s_max - self._opened % (self._s_max + 1)
            levels = list(range(self._s_max - s, self._s_max + 1))
            bracket = _Bracket(sizes=list(self._plans[s][0]), levels=levels, is_first=self._opened == 0)
        level = bracket.levels[bracket.rung]
        target_index = self._populations[level].next_target()
        parameters, vector = self._bred(bracket, level, target_index)
        if bracket not in self._brackets:
            self._brackets.append(bracket)
            self._opened += 1
        member = _Challenger(
            parameters=parameters,
            target=self._budget(level),
            bracket=bracket,
            level=level,
            vector=vector,
            target_index=target_index,
            age=self._age,
        )
        bracket.made.append(member)
        return member

    def _budget(self, level: int) -> int:
        return max(1, self._R // self._eta ** (self._s_max - level))

    def _bred(self, bracket: _Bracket, level: int, target_index: int) -> tuple[Parameters, Floats]:
        """Return parameters and vector of a new configuration: random in the first bracket, else offspring."""
        explored, space = ready(self._explored), ready(self._explored).space
        dimension = len(space.parameters)
        for _ in range(_TRIES):
            vector = self._rng.random(dimension)
            if not bracket.is_first:
                vector = self._offspring(
                    self._parents(bracket, level), self._populations[level].vectors[target_index]
                )
            parameters = space.decode(vector)
            if not space.violations(parameters) and explored.add(parameters):
                return parameters, vector
        parameters = explored.new_point(lambda: space.sample(self._rng))
        vector = space.encode(parameters)
        return parameters, np.where(np.isnan(vector), self._rng.random(dimension), vector)

    def _parents(self, bracket: _Bracket, level: int) -> Floats:
        """Return the parents, with random ones where there are fewer than three (Awad et al. 2021, section 4.3)."""
        if bracket.rung == 0:
            pool = self._populations[level].best(len(self._populations[level].losses))
        else:
            pool = self._populations[level - 1].best(bracket.sizes[bracket.rung])
        missing = max(0, 3 - len(pool))
        return np.concatenate([pool, self._rng.random((missing, self._populations[level].vectors.shape[1]))])

    def _offspring(self, parents: Floats, target: Floats) -> Floats:
        """Return the cross of a mutant with the target (Storn and Price 1997, rand/1/bin); shape (d,)."""
        a, b, c = parents[self._rng.choice(len(parents), 3, replace=False)]
        mutant = a + self._factor * (b - c)
        outside = (mutant < 0) | (mutant > 1)
        mutant = np.where(outside, self._rng.random(len(mutant)), mutant)
        taken = self._rng.random(len(mutant)) < self._crossover
        taken[int(self._rng.integers(len(mutant)))] = True
        return np.where(taken, mutant, target)

    def _is_paused_at(self, member: _Challenger) -> bool:
        return member.level < self._s_max

    def _arrived(self, member: _Challenger) -> None:
        self._select(member)
        bracket = member.bracket
        if not bracket.is_first and member.level < self._s_max:
            self._end(member, f"was measured with {member.target} intermediate results")
        self._look_at(bracket)

    def _select(self, member: _Challenger) -> None:
        """Let a member take the place of its target if it is better."""
        population = self._populations[member.level]
        if member.age == self._age and member.loss < population.losses[member.target_index]:
            population.vectors[member.target_index] = member.vector
            population.losses[member.target_index] = member.loss

    def _look_at(self, bracket: _Bracket) -> None:
        """Begin the next rung when all members of this one have arrived."""
        while not bracket.wants_more and all(member.waits for member in bracket.made):
            if bracket.rung == len(bracket.sizes) - 1:
                if bracket in self._brackets:
                    self._brackets.remove(bracket)
                return
            bracket.rung += 1
            bracket.made = self._promoted(bracket) if bracket.is_first else []

    def _promoted(self, bracket: _Bracket) -> list[_Challenger]:
        """Promote the best of the first bracket to its next rung, and end the others."""
        ranked = sorted(bracket.made, key=lambda member: member.loss)
        best = [member for member in ranked if not member.failed][: bracket.sizes[bracket.rung]]
        for member in ranked:
            if member not in best:
                places, count = bracket.sizes[bracket.rung], len(ranked)
                self._end(
                    member, f"{rounded(self._sign * member.loss)} is not among the best {places} of {count}"
                )
        for member in best:
            member.level = bracket.levels[bracket.rung]
            member.target_index = self._populations[member.level].next_target()
            if not member.complete:
                self._continue(member, self._budget(bracket.levels[bracket.rung]))
        bracket.sizes[bracket.rung] = len(best)
        return best
