"""The base class of tuners that learn from results: history, failures, imports, duplicates, constraints."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...numerics import Floats, Ints
from ...plugins import loss_sign, seed_of
from ...protocol import Config, Parameters, metric_value, objectives_of
from ...search_space import SearchSpace
from ..tuner import Tuner
from .embedding import Layout
from .explored import Explored, measurements, ready
from .history import History
from .outcomes import Outcomes
from .search_prior import SearchPrior

_HUGE = 1e300
_MOST_RANKED = 5_000  # results of several objectives: more would take seconds for each suggestion
_NOT_TO_BLAME = ("INFRA", "USER_CANCELED", "SYS_CANCELED")


class LearningTuner(Tuner):
    """Keeps every point and its loss in a history; a subclass overrides `_proposals`.

    Lower losses are better; a failed trial and NaN have the loss inf, all others are finite. A trial that was cancelled
    or whose machine was lost has none: that says nothing about its parameters. A suggestion is the first proposal that
    is new and meets the constraints, or else such a random point. When the space changes, results that are points of
    the new one are kept.

    >>> class Middle(LearningTuner):
    ...     def _proposals(self): yield np.full(self._layout.dimension, 0.5)
    >>> tuner = Middle(seed=1)
    >>> tuner.update_search_space({"x": {"_type": "randint", "_value": [0, 3]}})
    >>> [tuner.generate_parameters(i)["x"] for i in range(3)]
    [1, 2, 0]
    """

    def __init__(self, optimize_mode: str = "minimize", seed: int | None = None) -> None:
        self._sign = loss_sign(optimize_mode)
        self._goal = "default"  # the name of the first objective
        self._rng = np.random.default_rng(seed_of(seed))
        self._explored: Explored | None = None
        self._outcomes: Outcomes | None = None  # of several objectives, or of limits
        self._is_ranked = True
        self._not_ranked: set[int] = set()  # rows whose loss is not yet that of a rank
        self._priors: Mapping[str, Config] = {}
        self._failed: dict[int, str] = {}  # how trials failed, by row of the history
        self._causes: dict[int, str] = {}  # of trials that are about to end, by parameter id

    def update_priors(self, priors: Mapping[str, Config]) -> None:
        """Take the priors of an experiment, as in its configuration, before the search space.

        A subclass that uses them finds them in `_prior`.
        """
        self._priors = priors

    def update_objectives(self, objectives: Sequence[Config]) -> None:
        """Take the objectives of an experiment, as in its configuration, before the search space.

        With several, or with limits on outcomes, results are ranked: feasible before infeasible, by non-dominated rank.
        """
        parsed = objectives_of(objectives)
        goals = [objective for objective in parsed if objective.direction is not None]
        self._sign, self._goal = goals[0].sign, goals[0].name
        if len(parsed) > 1 or goals[0].is_limited:
            self._outcomes = Outcomes(parsed)

    def _proposals(self) -> Iterable[Floats]:
        """Return vectors of the unit cube to try next, best first, each of shape (d,); there may be none."""
        raise NotImplementedError(f"{type(self).__name__} does not override _proposals")

    def _parsed(self, search_space: Any) -> SearchSpace:
        """Return the search space in whose cube the tuner searches."""
        return SearchSpace.parse(search_space, self.constraints)

    def _new_history(self, layout: Layout) -> History:
        """Return an empty history."""
        return History(layout)

    def _begin(self) -> None:
        """Set up what depends on the search space; the history is still empty."""

    def _suggested(self, parameter_id: int, row: int) -> None:
        """Note the row of the history of a new suggestion."""

    def _settled(self, row: int) -> None:
        """Note that a row of the history has a new loss."""

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space; keep the results that are points of it."""
        earlier = self._results() if self._explored else []
        outcomes = self._outcomes
        if outcomes is not None:
            self._outcomes = Outcomes(outcomes.objectives)
        space = self._parsed(search_space)
        self._explored = Explored(space, self._explored)
        self._layout = Layout.of(space)
        self._prior = SearchPrior.of(space, self._priors)
        self._history = self._new_history(self._layout)
        self._rows: dict[int, int] = {}  # of every suggestion, for late and second results
        self._running: dict[int, int] = {}  # rows of running trials, by parameter id
        self._failed_points: dict[Hashable, int] = {}  # rows of starting points that failed
        failed, self._failed = self._failed, {}
        self._not_ranked.clear()
        self._begin()
        for old_row, parameters, loss in earlier:
            if not space.validate(parameters):
                row = self._history.add(space.encode(parameters))
                if outcomes is not None and self._outcomes is not None:
                    self._outcomes.take(row, outcomes, old_row)
                    self._not_ranked.add(row)
                if old_row in failed:
                    self._failed[row] = failed[old_row]
                self._settle(row, loss)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Parameters:
        """Return the best proposal that is new and meets the constraints."""
        explored = ready(self._explored)
        self._rank_outcomes()
        parameters = self._first_new(explored)
        if parameters is None:
            parameters = explored.new_point(lambda: explored.space.sample(self._rng))
        row = self._history.add(explored.space.encode(parameters))
        self._rows[parameter_id] = self._running[parameter_id] = row
        self._suggested(parameter_id, row)
        return parameters

    def _first_new(self, explored: Explored) -> Parameters | None:
        for vector in self._proposals():
            parameters = explored.space.decode(vector)
            if not explored.space.violations(parameters) and explored.add(parameters):
                return parameters
        return None

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        """Learn a result; a second one for the same id replaces the first, an unknown id is imported."""
        row = self._rows.get(parameter_id)
        if row is None:
            self.import_data([{"parameter": parameters, "value": value}])
        else:
            loss = self._outcome(row, value)
            self._running.pop(parameter_id, None)
            self._failed.pop(row, None)
            if loss == math.inf:
                self._failed[row] = "NAN"
            self._settle(row, loss)

    def trial_end_cause(self, parameter_id: int, cause: str) -> None:
        """Note why a trial is about to end."""
        self._causes[parameter_id] = cause

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Rank a trial that ended without a result as the worst, unless its parameters are not to blame."""
        row, cause = self._running.pop(parameter_id, None), self._causes.pop(parameter_id, "")
        if row is None or cause in _NOT_TO_BLAME:
            return
        self._failed[row] = cause
        self._settle(row, math.inf)

    def starting_point_failed(self, parameters: Any, cause: str) -> None:
        """Rank a starting point that failed as the worst, unless its parameters are not to blame."""
        explored = ready(self._explored)
        if cause in _NOT_TO_BLAME or explored.space.validate(parameters):
            return
        explored.add(parameters)
        row = self._history.add(explored.space.encode(parameters))
        self._failed[row], self._failed_points[explored.key(parameters)] = cause, row
        self._settle(row, math.inf)

    def update_running(self, points: Sequence[Parameters]) -> None:
        """Take starting points that run already, in order not to suggest them again."""
        explored = ready(self._explored)
        for point in points:
            explored.add(point)

    def import_data(self, data: list[Any]) -> None:
        """Learn results from elsewhere; skip items that are not points of the space or lack a value."""
        explored = ready(self._explored)
        for parameters, value in measurements(explored, data):
            explored.add(parameters)
            if value is not None:
                row = None
                if self._failed_points:  # starting points that may have been run again
                    row = self._failed_points.pop(explored.key(parameters), None)
                if row is None:
                    row = self._history.add(explored.space.vector(parameters))
                self._failed.pop(row, None)
                self._settle(row, self._outcome(row, value))

    def _settle(self, row: int, loss: float) -> None:
        self._history.settle(row, loss)
        self._settled(row)

    def _outcome(self, row: int, value: Any) -> float:
        """Record the outcomes of a row; return its loss, which the ranking replaces where there are several."""
        loss = self._loss(value)
        if self._outcomes is None:
            return loss
        self._is_ranked = False
        self._not_ranked.add(row)
        return loss if self._outcomes.note(row, value) else math.inf

    def _rank_outcomes(self) -> None:
        """Give every result the loss of its rank among all; of more than 5,000, the best, the newest and new ones."""
        if self._outcomes is None or self._is_ranked:
            return
        self._is_ranked = True
        rows, half = self._outcomes.rows, _MOST_RANKED // 2
        if len(rows) > _MOST_RANKED:
            some = {*self._history.ranked[:half].tolist(), *rows[-half:].tolist(), *self._not_ranked}
            rows = np.array([row for row in sorted(some) if row in self._outcomes], dtype=np.int64)
        self._not_ranked.clear()
        for row, loss in zip(*self._outcomes.ranking(rows), strict=True):
            if loss != self._history.loss(int(row)):
                self._history.settle(int(row), float(loss))

    def _loss(self, value: Any) -> float:
        loss = self._sign * metric_value(value, self._goal)
        # Finite, so that sums of differences stay finite.
        return min(max(loss, -_HUGE), _HUGE) if loss < math.inf else math.inf

    def _running_rows(self) -> Ints:
        """Return the rows of running trials, in the order of suggestion."""
        return np.fromiter(self._running.values(), dtype=np.int64)

    def _weight_of_prior(self) -> float:
        """Return the weight of the prior after the present results, 0 without one."""
        history = self._history
        return self._prior.weight(history.units(history.ranked), history.losses) if self._prior else 0.0

    def _results(self) -> list[tuple[int, Parameters, float]]:
        """Return the known rows, parameters and losses, in order of arrival."""
        return self._decoded(self._history.ranked.tolist())

    def _decoded(self, rows: Iterable[int]) -> list[tuple[int, Parameters, float]]:
        space, history = ready(self._explored).space, self._history
        return [
            (row, space.decode(history.units(np.array([row]))[0]), history.loss(row)) for row in sorted(rows)
        ]


def latin_hypercube(rng: np.random.Generator, count: int, dimension: int) -> Floats:
    """Return points of the unit cube, each coordinate stratified; shape (count, dimension).

    McKay, Beckman and Conover, Technometrics 21(2), 1979.
    """
    strata = rng.permuted(np.tile(np.arange(count), (dimension, 1)), axis=1).T
    return (strata + rng.random((count, dimension))) / count
