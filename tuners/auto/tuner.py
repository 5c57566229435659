"""The `Auto` tuner: a Gaussian process where it helps, and moves without a model where it does not.

    Snoek et al., Practical Bayesian Optimization of Machine Learning Algorithms, NIPS 2012 (the method)
    Ginsbourger et al., Kriging is well-suited to parallelize optimization, 2010 (the kriging believer)

What each ingredient is worth was measured; see docs/lab/search-quality.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ...numerics import Floats, Ints
from ...protocol import Parameters
from ...search_space import SearchSpace
from ..base import Embedding, LearningTuner, Outcomes, SearchPrior, latin_hypercube, ready
from ..models import Box, Branch, Everywhere, Region, climb, mutants, neglected_branch, principal_axes
from .local_search import LocalSearch, Step
from .model import Acquisition, AutoModel, Settings
from .outcome_model import OutcomeAcquisition, OutcomeModel, Results, scalarised
from .side_models import EarlierLoss, EarlierSearches, FailureModel, KnownLosses, LearningCurves

_MOST_BRANCHES = 0.35  # of the suggestions
_EARLY = 100  # suggestions; by twice as many, the late shares hold
_MOST_PENDING = 100  # running trials that the model takes into account
# Trials without a final result at which half of the share of random suggestions is reached.
_MANY_UNFINISHED = 20
_KNOWING = 50  # suggestions after which the hypervolume decides more and more of them
_FEWEST = 4  # results that a model needs
_FEWEST_TO_DESCEND = 40  # results that the model of a descent learns from, also in few dimensions
_TELLING = 32  # results: among fewer, equal ones may be chance
_MOST_KNOWN = 5_000  # results that are looked at: the best half, and the newest
_RANDOM_POINTS = 20  # random points; one where trials hardly fail is chosen
_UNLIKELY = math.log(0.5)
_CAUTION = 2.0  # the power of the probability not to fail: a trial that fails says little about the objective
_DESIGNS = 40  # first designs drawn; the one whose closest points are furthest apart is kept
_LEVELS = 6  # distinct losses that show how far levels are apart
_APART = 0.25  # of the largest gap between them: less is a difference within a level


class AutoTuner(LearningTuner):
    """Suggests where the model expects the largest improvement; chooses its strategy itself.

    `optimize_mode` is `minimize` or `maximize`, `seed` an integer of at least 0. Raises ValueError for other
    arguments, NoMoreTrialError when a finite space is exhausted. A failed trial and NaN count as the worst result.
    Of more than 5,000 results it learns from the best 2,500 and the newest 2,500.

    >>> tuner = AutoTuner(seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(15):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> min(abs(tuner.generate_parameters(i)["x"] - 2) for i in range(15, 18)) < 0.5
    True
    """

    wants_periodical: bool | Literal["with an assessor"] = "with an assessor"
    settings: Settings = Settings()  # measurements set others before the search space
    _earlier_results: Sequence[EarlierLoss] = ()

    def _parsed(self, search_space: Any) -> SearchSpace:
        return SearchSpace.parse(search_space, self.constraints, self.settings.bend)

    def _begin(self) -> None:
        s = self.settings
        space = ready(self._explored).space
        self._embedding = Embedding.of(space, ordered_choices=s.ordered_choices, shared_names=s.shared_names)
        self._model, self._descent_model = AutoModel(self._embedding, s), AutoModel(self._embedding, s)
        self._failures = FailureModel(self._embedding, s)
        outcomes = self._outcomes
        self._outcome_model = None if outcomes is None else OutcomeModel(self._embedding, s, outcomes)
        self._local = LocalSearch(self._layout)
        self._step: Step | None = None
        self._curves = LearningCurves()
        # With several objectives, or limits, those of each.
        self._outcome_curves = [LearningCurves() for _ in range(0 if outcomes is None else outcomes.width)]
        # Rows of trials that an assessor stopped: their last value is not their result.
        self._stopped: set[int] = set()
        self._earlier = self._models_of_earlier()
        self._design = iter(initial_design(self._rng, self._embedding, self._prior, s))

    def update_earlier(self, results: Sequence[EarlierLoss]) -> None:
        """Take results of earlier searches."""
        self._earlier_results = list(results)
        self._earlier = self._models_of_earlier()

    def _models_of_earlier(self) -> EarlierSearches | None:
        if not self._earlier_results:
            return None
        return EarlierSearches(ready(self._explored).space, self._embedding, self._earlier_results)

    def receive_intermediate_result(
        self, parameter_id: int, parameters: Any, value: Any, *, sequence: int, **kwargs: Any
    ) -> None:
        """Record a point of the learning curve of a trial."""
        row = self._rows.get(parameter_id)
        if row is None:
            return
        if self._outcomes is None:
            self._curves.note(row, sequence + 1, self._loss(value))
            return
        for curves, loss in zip(self._outcome_curves, self._outcomes.partial(value), strict=True):
            curves.note(row, sequence + 1, loss)

    def trial_stopped(self, parameter_id: int) -> None:
        """Record that the next end of this trial is a stop, not a failure."""
        if parameter_id in self._running:
            self._stopped.add(self._running[parameter_id])

    def _proposals(self) -> Iterable[Floats]:
        s = self.settings
        self._step = None
        known = _telling(self._known())
        if s.failure_model and self._failed:
            known = self._without_chance_failures(known)
        if self._history.count < s.design_points or np.isfinite(known.losses).sum() < _FEWEST:
            planned = next(self._design, None)
            if planned is None:
                return self._random(_RANDOM_POINTS) if self._failed else []
            return [planned]
        if len(self._curves) and self._rng.random() < self._cheap_share():
            return self._random(1)
        if self._is_on_plateau(known):
            return self._random(_RANDOM_POINTS)
        if self._rng.random() < self._fading(s.model_free_share):
            return self._model_free_step(known)
        return self._model_based(known)

    def _is_on_plateau(self, known: KnownLosses) -> bool:
        """Return whether many results share the best level of a metric with few levels.

        Neither the model nor a small change leaves a wide plateau; random points do.
        """
        losses = known.losses if len(self._curves) else self._history.losses
        results = max(int(np.isfinite(losses).sum()), _TELLING)
        return plateau_size(losses) >= self.settings.plateau_share * results

    def _without_chance_failures(self, known: KnownLosses) -> KnownLosses:
        """Learn where trials fail; leave out the failures that the other trials do not confirm."""
        rows = np.sort(known.rows)
        kinds = [self._failed.get(row) for row in rows.tolist()]
        confirmed = self._failures.learn(self._history.units(rows), kinds, self._history.count)
        chance = rows[[kind is not None for kind in kinds] & ~confirmed]
        return known.take(np.flatnonzero(~np.isin(known.rows, chance)))

    def _random(self, count: int) -> Floats:
        """Return random points, shape (count, d), those where trials hardly fail first."""
        return self._likely_first(self._embedding.snap(self._rng.random((count, self._layout.dimension))))

    def _likely_first(self, units: Floats) -> Floats:
        """Return points, shape (m, d), with those where most trials fail at the end."""
        return units[np.argsort(self._failures.log_success(units) < _UNLIKELY, kind="stable")]

    def _cheap_share(self) -> float:
        """Return the share of random suggestions, which cost little when bad trials are stopped early."""
        without = self._curves.unfinished
        return self.settings.random_share_when_stopped * without / (without + _MANY_UNFINISHED)

    def _suggested(self, parameter_id: int, row: int) -> None:
        if self._step:
            self._local.suggested(row, self._step)

    def _settled(self, row: int) -> None:
        if row in self._stopped:
            self._failed.pop(row, None)
        elif self._history.loss(row) == math.inf:
            self._curves.forget(row)  # it failed
        step = self._local.pop(row)
        if step:
            outcomes = self._outcomes
            is_best = self._history.loss(row) < step.best if outcomes is None else outcomes.leads(row)
            self._local.finished(step, self._history.units(np.array([row]))[0], is_best=is_best)

    def _model_free_step(self, known: KnownLosses) -> Floats:
        """Change one of the best results a little, as simulated annealing does."""
        place = min(int(self._rng.geometric(0.4)), int(np.isfinite(known.losses).sum())) - 1
        ties = known.rows[known.losses == known.losses[place]]
        units = self._history.units(self._any_of(ties))
        return self._likely_first(mutants(self._rng, self._embedding, units, 10))

    def _any_of(self, rows: Ints) -> Ints:
        """Return a random row, shape (1,): the first of equal results is not better than the others."""
        return rows if len(rows) == 1 else rows[[int(self._rng.integers(len(rows)))]]

    def _model_based(self, known: KnownLosses) -> Floats:
        """Return candidates in order of expected improvement, or of the expected loss."""
        s, history = self.settings, self._history
        is_local, branch = self._where_to_look()
        pending = np.setdiff1d(self._running_rows(), known.rows)[-_MOST_PENDING:]
        near = is_local and len(known.rows) > s.near_set
        is_descent = near and self._can_descend() and self._local.may_descend(self._running_rows())
        known = self._nearest(known, is_descent=is_descent) if near else self._thinned(known)
        running = history.units(pending)
        acquisition = (
            self._descent(known, running) if is_descent else self._acquisition(known, running, near=near)
        )
        region: Region = branch or Everywhere()
        if branch:
            acquisition = acquisition.within(branch)
        elif is_local:
            good = acquisition.units[: max(len(acquisition.units) // 3, 2)]
            leading = self._leading(known)
            centre = good[0] if len(leading) == 1 else history.units(self._any_of(leading))[0]
            radius = self._local.radius(is_descent=is_descent)
            region = Box(centre, radius, principal_axes(self._embedding, good))
            best_loss = float(history.losses[0]) if history.finished else math.inf
            self._step = Step(centre=centre, is_descent=is_descent, best=best_loss)
        best = acquisition.units[: s.climbers]
        return climb(self._rng, self._embedding, region, self._weighted(acquisition), best, s.climb_rounds)

    def _weighted(self, acquisition: Acquisition | OutcomeAcquisition) -> Callable[[Floats], Floats]:
        """Return the logarithm of the acquisition function, failures, the prior and earlier searches included."""
        history, prior, weight = self._history, self._prior, self._weight_of_prior()
        earlier = self._earlier
        weights = (
            np.empty(0) if earlier is None else earlier.weights(history.units(history.ranked), history.losses)
        )

        def score(units: Floats) -> Floats:
            scores = acquisition.score(units) + _CAUTION * self._failures.log_success(units)
            if weight:
                scores += weight * prior.log_density(units)
            return scores if earlier is None else scores + earlier.bonus(weights, units)

        return score

    def _acquisition(
        self, known: KnownLosses, pending: Floats, *, near: bool
    ) -> Acquisition | OutcomeAcquisition:
        """Return the acquisition function after the known results."""
        units, suggested = self._history.units(known.rows), self._history.count
        if self._outcomes is None or self._outcome_model is None:
            return self._model.acquisition(
                units, known.losses, pending=pending, suggested=suggested, near=near
            )
        losses, excesses = self._expected(self._outcomes, known.rows)
        if self._is_scalarised():
            weighted = scalarised(self._rng, losses)
            return self._model.acquisition(units, weighted, pending=pending, suggested=suggested, near=False)
        final = np.array([row not in self._stopped for row in known.rows.tolist()])
        results = Results(rows=known.rows, units=units, losses=losses, excesses=excesses, final=final)
        return self._outcome_model.acquisition(self._rng, results, pending=pending, suggested=suggested)

    def _descent(self, known: KnownLosses, pending: Floats) -> Acquisition:
        """Return minus the expected loss after the best results: much worse ones would hide small differences."""
        good = known.take(np.arange(min(self._descent_set(), len(known.rows))))
        units, suggested = self._history.units(good.rows), self._history.count
        acquisition = self._descent_model.acquisition(
            units, good.losses, pending=pending, suggested=suggested, near=True
        )
        return replace(acquisition, is_descending=True)

    def _descent_set(self) -> int:
        """Return how many results the model of a descent learns from."""
        dimension = self._layout.dimension
        coefficients = (dimension + 1) * (dimension + 2) // 2  # of a quadratic function
        return min(max(3 * coefficients, _FEWEST_TO_DESCEND), self.settings.largest_set)

    def _expected(self, outcomes: Outcomes, rows: Ints) -> tuple[Floats, Floats]:
        """Return the losses and the excesses of rows; those of stopped trials are predicted."""
        table = np.hstack(outcomes.tables(rows))
        finals = rows[[row in outcomes for row in rows.tolist()]]
        reported = np.hstack([outcomes.losses(finals), outcomes.excesses(finals)])
        stopped = [place for place, row in enumerate(rows.tolist()) if row in self._stopped]
        for column, curves in enumerate(self._outcome_curves):
            known = curves.comparable(dict(zip(finals.tolist(), reported[:, column].tolist(), strict=True)))
            expected = dict(zip(known.rows.tolist(), known.losses.tolist(), strict=True))
            for place in stopped:
                table[place, column] = expected.get(int(rows[place]), table[place, column])
        return table[:, : len(outcomes.goals)], table[:, len(outcomes.goals) :]

    def _is_scalarised(self) -> bool:
        """Return whether the next suggestion is for one random weighting of the objectives."""
        outcomes = self._outcomes
        if outcomes is None or len(outcomes.goals) == 1 or outcomes.limits:
            return False
        return bool(self._rng.random() < self._fading(self.settings.scalarised_share))

    def _fading(self, share: float) -> float:
        """Return a share of the suggestions; with several objectives, it shrinks once the model knows enough."""
        if self._outcomes is None or len(self._outcomes.goals) == 1:
            return share
        return share * min(_KNOWING / self._history.count, 1.0)

    def _leading(self, known: KnownLosses) -> Ints:
        """Return the rows that share the first place: of tied results all, of several objectives the front."""
        if self._outcomes is None or len(self._outcomes.goals) == 1:
            return known.rows[known.losses == known.losses[0]]
        return known.rows[np.floor(known.losses) == np.floor(known.losses[0])]

    def _can_descend(self) -> bool:
        """Return whether there is one loss to minimise, and enough results."""
        return self._outcomes is None and self._history.count >= self.settings.descend_after

    def _where_to_look(self) -> tuple[bool, Branch | None]:
        """Return whether to stay in the trust region, and the branch to search, if any."""
        if self._local.must_descend(self._running_rows()):
            return True, None
        s, history, draw = self.settings, self._history, float(self._rng.random())
        late = min(max((history.count - _EARLY) / _EARLY, 0.0), 1.0)
        if draw < s.local_share + late * (s.late_local_share - s.local_share):
            return True, None
        if draw < 1 - min(max(s.branch_share, s.early_branches / history.count), _MOST_BRANCHES):
            return False, None
        units = history.units(np.arange(max(history.count - _MOST_KNOWN, 0), history.count))
        return False, neglected_branch(self._rng, self._layout, units, nested_only=s.nested_only)

    def _known(self) -> KnownLosses:
        """Return final losses, and those that learning curves predict, best first."""
        ranked, losses = self._history.ranked, self._history.losses
        if not len(self._curves):
            unknown = [
                row for row in self._stopped if not any(row in curves for curves in self._outcome_curves)
            ]
            is_known = np.isfinite(losses) | ~np.isin(ranked, unknown)
            return KnownLosses(ranked[is_known], losses[is_known])
        results = dict(zip(ranked.tolist(), losses.tolist(), strict=True))
        finals = {row: loss for row, loss in results.items() if loss < math.inf}
        known = self._curves.comparable(finals)
        failed = [row for row in results if row not in finals and row not in self._stopped]
        rows = np.append(known.rows, failed).astype(np.int64)
        losses = np.append(known.losses, np.full(len(failed), math.inf))
        order = np.argsort(losses, kind="stable")
        return KnownLosses(rows[order], losses[order])

    def _results(self) -> list[tuple[int, Parameters, float]]:
        """Return the known results, without stopped trials: they neither failed nor have a result."""
        return self._decoded(row for row in self._history.ranked.tolist() if row not in self._stopped)

    def _nearest(self, known: KnownLosses, *, is_descent: bool) -> KnownLosses:
        """Return the points nearest to the best; for a descent, twice as many as its model takes, or more."""
        count = max(self.settings.near_set, 2 * self._descent_set() if is_descent else 0)
        features = self._embedding.features(self._history.units(known.rows))
        distances = ((features - features[0]) ** 2).sum(axis=1)
        return known.take(np.sort(np.argsort(distances, kind="stable")[:count]))

    def _thinned(self, known: KnownLosses) -> KnownLosses:
        """Return the results to learn from: all, or the best, the newest and some others."""
        limit, count = self.settings.largest_set, len(known.rows)
        if count <= limit:
            return known
        newest = np.argsort(known.rows)[-(limit // 4) :]
        some = self._rng.choice(count, limit // 4, replace=False)
        return known.take(np.unique(np.concatenate([np.arange(limit // 2), newest, some])))


def _telling(known: KnownLosses) -> KnownLosses:
    """Return all results, best first, or of more than 5,000 the best half of these and the newest."""
    count, half = len(known.rows), _MOST_KNOWN // 2
    if count <= _MOST_KNOWN:
        return known
    newest = np.argpartition(known.rows, count - half)[count - half :]
    return known.take(np.union1d(np.arange(half), newest))


def initial_design(
    rng: np.random.Generator, embedding: Embedding, prior: SearchPrior, settings: Settings
) -> Floats:
    """Return the first points, shape (n, d), NaN where inactive.

    Every parameter is stratified (McKay et al. 1979), a number in the middle of its range; of several such designs the
    maximin one is taken (Johnson et al. 1990). With a prior, the middle is its centre, and every second point is drawn
    from it.
    """
    layout, width = embedding.layout, settings.start_width
    centre = _centre_of(rng, embedding)[None][: int(settings.centre_first)]
    designs = []
    for _ in range(_DESIGNS):
        design = latin_hypercube(rng, settings.design_points - len(centre), layout.dimension)
        design[:, layout.numeric] = 0.5 + width * (design[:, layout.numeric] - 0.5)
        designs.append(embedding.snap(prior.mixed(np.concatenate([centre, design]))))
    return max(designs, key=lambda points: _smallest_distance(embedding.features(points)))


def _centre_of(rng: np.random.Generator, embedding: Embedding) -> Floats:
    """Return the point with every number in the middle of its range and any options, shape (d,)."""
    layout = embedding.layout
    point = np.full(layout.dimension, 0.5)
    point[layout.choices] = rng.random(len(layout.choices))
    return point


def _smallest_distance(features: Floats) -> float:
    squared = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    squared[np.arange(len(squared)), np.arange(len(squared))] = np.inf
    return float(squared.min(initial=np.inf))


def plateau_size(losses: Floats) -> int:
    """Return how many losses, ascending, are on the best level; 0 unless half of these are equal.

    Shape (n,), inf for failures. Only the best levels are looked at, however many losses there are.

    >>> plateau_size(np.array([0.1, 0.101, 0.101, 0.2, 0.2, 0.2, 0.3]))
    3
    """
    finite, ends = losses[: np.searchsorted(losses, np.inf)], [0]
    while ends[-1] < len(finite) and len(ends) <= _LEVELS:
        ends.append(int(np.searchsorted(finite, finite[ends[-1]], side="right")))
    values, counts = finite[ends[:-1]], np.diff(ends)
    gaps = np.diff(values)
    last = int(np.argmax(gaps >= _APART * gaps.max())) if len(gaps) else 0
    on_level = counts[: last + 1]
    return int(on_level.sum()) if 2 * on_level.max(initial=0) >= on_level.sum() else 0
