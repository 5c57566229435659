"""`PitchpipeSearchCV`: scikit-learn's randomized search, with a tuner that learns from the scores."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..protocol import Json, Parameters
from ..sdk import flat_arguments
from ..tuners import REGISTRY, Tuner
from .requirements import required

sklearn = required("sklearn", "1.6")
model_selection = required("sklearn.model_selection", "1.6")
utils = required("sklearn.utils", "1.6")
exceptions = required("sklearn.exceptions", "1.6")
joblib = required("joblib", "1.2", "sklearn")
# How many folds of a candidate it expects can be changed between two calls.
_HAS_FOLDS = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)

__all__ = ["PitchpipeSearchCV"]

_STAGES = 3
_NO_CHANCE = 1.28  # so many standard deviations behind the best: one candidate in ten would still catch up
_Results: TypeAlias = Mapping[str, NDArray[Any]]  # the columns of `cv_results_`
_EDGE = 1e-9  # a distribution may be infinite at the ends of the unit interval


class PitchpipeSearchCV(model_selection.RandomizedSearchCV):
    """Searches the parameters of an estimator by cross-validation, as `RandomizedSearchCV` does, and learns on the way.

    `param_distributions` maps names to lists of values, to scipy distributions, or to parameters of a search space of
    Pitchpipe such as `{"_type": "loguniform", "_value": [1e-3, 10]}`; a list of such dicts is a choice between them.
    `n_iter` candidates are tried, or fewer if the space has no more. `tuner` (with `tuner_args`) is a tuner of
    Pitchpipe that does not pause trials.

    `resource` stops hopeless candidates early. With "folds" a candidate is scored fold by fold, and no further once the
    folds so far leave it a chance of less than 10 % against the best; `cv_results_["folds"]` says how many it had, and
    one without all of them has a NaN as mean score. With "n_samples", the number of training samples, or an integer
    parameter of the estimator, which is at most `max_resource`, and the default `factor` of 3, each candidate is scored
    on a ninth of the resource, then on a third, then on all of it; it reaches the next stage only if it is among the
    best third of the candidates in this one. `cv_results_["fraction"]` says how much each row had. None scores all.

    With `reshuffle` candidates get other splits of the same kind, from one batch to the next, so that none is the best
    because it suits the splits. It needs a `cv` that shuffles.

    Raises ValueError if these arguments do not fit together.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> search = PitchpipeSearchCV(SVC(), {"C": [0.1, 1, 10], "kernel": ["linear", "rbf"]}, n_iter=6, random_state=0)
    >>> search.fit(*load_iris(return_X_y=True)).best_params_
    {'C': 1, 'kernel': 'linear'}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **model_selection.RandomizedSearchCV._parameter_constraints,
        "tuner": [str],
        "tuner_args": [dict, None],
        "resource": [str, None],
        "reshuffle": ["boolean"],
        "max_resource": [Integral, None],
        "factor": [Real],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        tuner: str = "Auto",
        tuner_args: Mapping[str, Json] | None = None,
        resource: str | None = None,
        reshuffle: bool = False,
        max_resource: int | None = None,
        factor: float = 3,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.tuner = tuner
        self.tuner_args = tuner_args
        self.resource = resource
        self.reshuffle = reshuffle
        self.max_resource = max_resource
        self.factor = factor

    def _run_search(self, evaluate_candidates: Callable[..., _Results]) -> None:
        """Let the tuner propose candidates, a few at a time, and report their scores to it."""
        self._check_arguments()
        random = utils.check_random_state(self.random_state)
        space = _Space(self.param_distributions)
        tuner = self._make_tuner(space, int(random.randint(2**31 - 1)))
        folds = _Folds(self._checked_cv_orig, random, is_reshuffled=self.reshuffle)
        jobs = joblib.effective_n_jobs(self.n_jobs)
        evaluation: _Evaluation | _Race
        if self.resource == "folds" and _HAS_FOLDS:
            self._race = evaluation = _Race(self, evaluate_candidates, folds, jobs)
            at_once = jobs
        else:
            evaluation = _Evaluation(self, evaluate_candidates, folds)
            at_once = max(1, jobs // self.n_splits_)
        try:
            self._try_all(evaluation, at_once, tuner, space)
        finally:
            self.__dict__.pop("_race", None)
        evaluation.finish()

    def _try_all(self, evaluation: _Evaluation | _Race, at_once: int, tuner: Tuner, space: _Space) -> None:
        for first in range(0, self.n_iter, at_once):
            ids = list(range(first, min(first + at_once, self.n_iter)))
            proposed = dict(zip(ids, tuner.generate_multiple_parameters(ids), strict=False))
            if proposed:
                evaluation.try_all(proposed, tuner, space)
            if len(proposed) < len(ids):
                break
        if evaluation.failure is not None:
            raise evaluation.failure

    def _check_arguments(self) -> None:
        if isinstance(self.scoring, list | tuple | dict) and not isinstance(self.refit, str):
            raise ValueError("with several metrics, refit must name the one to maximise")
        if self.factor <= 1:
            raise ValueError(f"factor must be greater than 1, not {self.factor}")
        if self.reshuffle and self.resource not in (None, "folds"):
            raise ValueError(
                "reshuffle and resource: candidates that share a part of the resource share the splits"
            )
        if self.resource in (None, "folds", "n_samples"):
            return
        if self.resource not in self.estimator.get_params():
            raise ValueError(f"resource: {type(self.estimator).__name__} has no parameter {self.resource!r}")
        if self.max_resource is None or self.max_resource < 1:
            raise ValueError(f"max_resource must say how large {self.resource} is at most")

    def _make_tuner(self, space: _Space, seed: int) -> Tuner:
        tuner = REGISTRY.create_inner(self.tuner, self.tuner_args, optimize_mode="maximize", seed=seed)
        if tuner.wants_periodical is True:
            raise ValueError(
                f"tuner: {self.tuner} pauses trials, which cross-validation cannot; see `resource`"
            )
        tuner.update_search_space(space.form)
        return tuner

    def __getstate__(self) -> Any:
        """Leave out the race, which is for this process: scikit-learn passes the search to its workers."""
        return {name: value for name, value in super().__getstate__().items() if name != "_race"}

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> Any:
        """Return the columns of `cv_results_`; those of a race come at its end, in the same dict."""
        if (race := self.__dict__.get("_race")) is not None:
            return race.collect(out)
        return super()._format_results(candidate_params, n_splits, out, more_results)

    @staticmethod
    def _select_best_index(refit: Any, refit_metric: str, results: _Results) -> int:
        """Return the row of the best candidate among those that had the whole resource."""
        parent = model_selection.RandomizedSearchCV
        if callable(refit) or "fraction" not in results:
            return parent._select_best_index(refit, refit_metric, results)
        scores = np.where(results["fraction"] == 1, results[f"mean_test_{refit_metric}"], np.nan)
        return int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))


class _Race:
    """Scores candidates fold by fold, and stops those that the folds so far leave no chance against the best.

    All candidates see the same folds, so the differences to the best are compared, fold by fold: they vary less than
    scores do. The remaining folds of a candidate are as good as those before them, give or take the usual variation.
    """

    def __init__(
        self, search: PitchpipeSearchCV, evaluate: Callable[..., _Results], folds: _Folds, jobs: int
    ) -> None:
        self._search, self._evaluate, self._folds, self._jobs = search, evaluate, folds, jobs
        self._count = search.n_splits_
        self._candidates: dict[int, Parameters] = {}
        self._fits: dict[int, list[Any]] = {}  # what scikit-learn tells of each fold
        self._scores: dict[int, list[float]] = {}
        self._best: list[float] = []  # of the best candidate with all folds
        self._collected: list[Any] = []
        self._results: dict[str, Any] = {}
        self.failure: ValueError | None = None  # of the first fits, while no fit has succeeded

    def try_all(self, proposed: Mapping[int, Parameters], tuner: Tuner, space: _Space) -> None:
        """Score some candidates on as many folds as each deserves, and tell the tuner how they ended."""
        self._folds.renew()
        self._candidates |= {number: space.decode(values) for number, values in proposed.items()}
        left, done = list(proposed), 0
        while left:
            more = min(self._count - done, max(1, self._jobs // len(left)))
            self._score(left, range(done, done + more))
            done += more
            for number in list(left):
                if (value := self._judge(number)) is not None:
                    left.remove(number)
                    _tell(tuner, number, proposed[number], value)

    def _score(self, numbers: Sequence[int], folds: range) -> None:
        """Have scikit-learn fit and score candidates on some folds."""
        self._folds.chosen, self._collected = folds, []
        self._search.n_splits_ = len(folds)  # so many it expects of each candidate
        try:
            self._evaluate([self._candidates[number] for number in numbers], cv=self._folds)
        except ValueError as error:
            self.failure = _excused(error, self.failure, bool(self._fits))
        finally:
            self._search.n_splits_, self._folds.chosen = self._count, None
        for number in numbers:
            fits, self._collected = self._collected[: len(folds)], self._collected[len(folds) :]
            if fits:
                self.failure = None
                self._fits.setdefault(number, []).extend(fits)
            scores = map(self._score_of, fits) if fits else [math.nan]
            self._scores.setdefault(number, []).extend(scores)

    def collect(self, out: Sequence[Any]) -> dict[str, Any]:
        """Note the fits of the last call, the last ones of all; return the dict that the end fills."""
        known = sum(map(len, self._fits.values()))
        self._collected = list(out[known:])
        return self._results

    def _score_of(self, fit: Mapping[str, Any]) -> float:
        scores = fit["test_scores"]
        if not isinstance(scores, Mapping):
            return float(scores)
        if (metric := self._search.refit) not in scores:
            raise ValueError("with several metrics, refit must name the one to maximise")
        return float(scores[metric])

    def _judge(self, number: int) -> float | None:
        """Return the value of a candidate that needs no more folds, NaN if a fit failed; None if it continues."""
        scores = self._scores[number]
        if math.isnan(sum(scores)):
            return math.nan
        if len(scores) == self._count:
            if not self._best or sum(scores) > sum(self._best):
                self._best = scores
            return float(np.mean(scores))
        if not self._best:
            return None
        behind = -float(np.mean(self._differences(scores)))
        others = [each for each in self._scores.values() if len(each) > 1 and each is not self._best]
        spread = [np.var(self._differences(each), ddof=1) for each in others]
        left = 1 / len(scores) - 1 / self._count
        if not spread or behind <= _NO_CHANCE * math.sqrt(float(np.nanmedian(spread)) * left):
            return None
        return float(np.mean(self._best)) - behind

    def _differences(self, scores: Sequence[float]) -> NDArray[np.float64]:
        """Return how much better each score is than that of the best on the same fold, or than its mean."""
        best = np.array(self._best)
        return np.array(scores) - (best.mean() if self._folds.is_reshuffled else best[: len(scores)])

    def finish(self) -> None:
        """Fill the columns: one row for each candidate, and NaN for the folds that it did not need."""
        counts = [len(fits) for fits in self._fits.values()]
        padded = [
            each
            for fits in self._fits.values()
            for each in [*fits, *[_unknown(fits[0])] * (self._count - len(fits))]
        ]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"One or more of the \w+ scores are non-finite")
            columns = self._search._format_results(
                [self._candidates[number] for number in self._fits], self._count, padded, {"folds": counts}
            )
        self._results.update(columns)


def _unknown(fit: Any) -> Any:
    """Return what a fit tells, with NaN for each number.

    >>> _unknown({"fit_time": 0.5, "test_scores": {"a": 1.0}, "fit_error": None})
    {'fit_time': nan, 'test_scores': {'a': nan}, 'fit_error': None}
    """
    if isinstance(fit, Mapping):
        return {name: _unknown(value) for name, value in fit.items()}
    return math.nan if isinstance(fit, Real) else fit


def _excused(error: ValueError, failure: ValueError | None, has_results: bool) -> ValueError | None:
    """Warn that all fits of some candidates failed; return what to raise at the end if no fit has succeeded."""
    if "fits failed" not in str(error):
        raise error
    warnings.warn(str(error), exceptions.FitFailedWarning, stacklevel=3)
    return None if has_results else failure or error


def _tell(tuner: Tuner, number: int, parameters: Parameters, value: float) -> None:
    """Tell the tuner the value of a candidate; NaN is a failure."""
    if not math.isnan(value):
        tuner.receive_trial_result(number, parameters, value)
    tuner.trial_end(number, not math.isnan(value))


class _Evaluation:
    """Scores candidates by cross-validation on a part of the resource, and decides which continue."""

    def __init__(self, search: PitchpipeSearchCV, evaluate: Callable[..., _Results], folds: _Folds) -> None:
        self._search, self._evaluate, self._folds = search, evaluate, folds
        self._resource = None if search.resource == "folds" else search.resource
        stages = 1 if self._resource is None else _STAGES
        self.fractions = [float(search.factor) ** -power for power in reversed(range(stages))]
        self._rungs: list[list[float]] = [[] for _ in self.fractions]
        self._has_results = False
        self.failure: ValueError | None = None  # of the first fits, while no fit has succeeded

    def try_all(self, proposed: dict[int, Parameters], tuner: Tuner, space: _Space) -> None:
        """Score some candidates, on more and more of the resource, and tell the tuner how they ended."""
        self._folds.renew()
        left = proposed
        for stage in range(len(self.fractions)):
            is_last = stage + 1 == len(self.fractions)
            scores = self._scores([space.decode(values) for values in left.values()], stage)
            kept: dict[int, Parameters] = {}
            for (number, parameters), score in zip(left.items(), scores, strict=True):
                if self._continues(score, stage):
                    kept[number] = parameters
                if not is_last and tuner.wants_periodical:
                    tuner.receive_intermediate_result(
                        number, parameters, score, trial_job_id=str(number), sequence=stage
                    )
                if is_last:
                    _tell(tuner, number, parameters, score)
                elif number not in kept:
                    if not math.isnan(score):
                        tuner.trial_stopped(number)
                    tuner.trial_end(number, False)
            left = kept
            if not left:
                break

    def finish(self) -> None:
        """Do nothing: scikit-learn has all rows."""

    def _scores(self, candidates: list[Parameters], stage: int) -> list[float]:
        """Return the mean scores of candidates; NaN for one whose fit failed."""
        fraction, resource = self.fractions[stage], self._resource
        self._folds.fraction = fraction if resource == "n_samples" else 1.0
        if resource not in (None, "n_samples"):
            amount = max(1, round(fraction * (self._search.max_resource or 1)))
            if any(resource in candidate for candidate in candidates):
                raise ValueError(f"{resource} is the resource, so it cannot be searched as well")
            candidates = [{**candidate, resource: amount} for candidate in candidates]
        more = None if resource is None else {"fraction": [fraction] * len(candidates)}
        try:
            results = self._evaluate(candidates, cv=self._folds, more_results=more)
        except ValueError as error:
            self.failure = _excused(error, self.failure, self._has_results)
            return [math.nan] * len(candidates)
        self.failure, self._has_results = None, True
        return [float(score) for score in results[self._metric(results)][-len(candidates) :]]

    def _continues(self, score: float, stage: int) -> bool:
        """Return whether a candidate is among the best that were scored in a stage so far; NaN never is."""
        if math.isnan(score):
            return False
        rung = self._rungs[stage]
        rung.append(score)
        better = sum(other > score for other in rung)
        return better < max(1, int(len(rung) / self._search.factor))

    def _metric(self, results: _Results) -> str:
        metric = "mean_test_score" if "mean_test_score" in results else f"mean_test_{self._search.refit}"
        if metric not in results:
            raise ValueError("with several metrics, refit must name the one to maximise")
        return metric


class _Folds:
    """The folds of a splitter, or the `chosen` ones of them, with only a `fraction` of the training samples.

    They are the same in every call, unless they are reshuffled: then until the next `renew`.
    """

    def __init__(self, splitter: Any, random: Any, *, is_reshuffled: bool = False) -> None:
        self._splitter, self._random = splitter, random
        self._folds: list[tuple[Any, Any, Any]] = []
        self.is_reshuffled = is_reshuffled
        self.fraction = 1.0
        self.chosen: range | None = None
        if is_reshuffled and not (hasattr(splitter, "random_state") and getattr(splitter, "shuffle", True)):
            raise ValueError(
                f"reshuffle: {splitter} does not shuffle; pass cv=KFold(5, shuffle=True), or without reshuffle"
            )

    def renew(self) -> None:
        """Make other folds for the next candidates, if they are reshuffled."""
        if self.is_reshuffled:
            self._folds, self._splitter = [], copy(self._splitter)
            self._splitter.random_state = int(self._random.randint(2**31 - 1))

    def split(self, *data: Any, **params: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the indices of training and test samples. A larger fraction contains the samples of a smaller one."""
        if not self._folds:
            self._folds = [
                (train, self._random.permutation(len(train)), test)
                for train, test in self._splitter.split(*data, **params)
            ]
        for train, order, test in (
            self._folds if self.chosen is None else [self._folds[n] for n in self.chosen]
        ):
            count = math.ceil(self.fraction * len(train))
            yield train[np.sort(order[:count])], test


class _Space:
    """The given parameters as a search space (`form`), which also decodes what a tuner proposes."""

    def __init__(self, given: Mapping[str, object] | Iterable[Mapping[str, object]]) -> None:
        grids: list[Any] = [given] if isinstance(given, Mapping) else list(given)
        self._parts = [{name: _Values(name, values) for name, values in grid.items()} for grid in grids]
        forms = [{name: values.form for name, values in part.items()} for part in self._parts]
        options = [{"_name": str(index), **form} for index, form in enumerate(forms)]
        self._is_single = len(forms) == 1
        self.form = forms[0] if self._is_single else {"part": {"_type": "choice", "_value": options}}

    def decode(self, proposed: Parameters) -> Parameters:
        """Return the parameters of the estimator."""
        if self._is_single:
            part, values = self._parts[0], proposed
        else:
            values = dict(proposed["part"])
            part = self._parts[int(values.pop("_name"))]
        return flat_arguments({name: part[name].decode(value) for name, value in values.items()})


class _Values:
    """The values of one parameter, and their form in the search space."""

    def __init__(self, name: str, given: Any) -> None:
        self._given = given
        if isinstance(given, Mapping):
            self.form = dict(given)
        elif hasattr(given, "ppf"):
            self.form = {"_type": "uniform", "_value": [_EDGE, 1 - _EDGE]}
        elif isinstance(given, Iterable) and not isinstance(given, str):
            self._given = list(given)
            self.form = {"_type": "choice", "_value": list(range(len(self._given)))}
        else:
            raise TypeError(
                f"{name}: {given!r} is neither a list of values, nor a scipy distribution with ppf,"
                " nor a parameter such as {'_type': 'uniform', '_value': [0, 1]}"
            )

    def decode(self, value: Any) -> Any:
        """Return the value of the estimator's parameter for a value that the tuner proposes."""
        if isinstance(self._given, Mapping):
            return value
        if isinstance(self._given, list):
            return self._given[value]
        quantile = self._given.ppf(value).item()
        return int(quantile) if hasattr(self._given.dist, "pmf") else quantile
