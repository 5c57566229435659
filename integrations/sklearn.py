"""`PitchpipeSearchCV`: scikit-learn's randomized search, with a tuner that learns from the scores."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..protocol import Json, Parameters
from ..sdk import flat_arguments
from ..tuners import REGISTRY, Tuner
from .requirements import required

model_selection = required("sklearn.model_selection", "1.6")
utils = required("sklearn.utils", "1.6")
exceptions = required("sklearn.exceptions", "1.6")
joblib = required("joblib", "1.2", "sklearn")

__all__ = ["PitchpipeSearchCV"]

_STAGES = 3
_Results: TypeAlias = Mapping[str, NDArray[Any]]  # the columns of `cv_results_`
_EDGE = 1e-9  # a distribution may be infinite at the ends of the unit interval


class PitchpipeSearchCV(model_selection.RandomizedSearchCV):
    """Searches the parameters of an estimator by cross-validation, as `RandomizedSearchCV` does, and learns on the way.

    `param_distributions` maps names to lists of values, to scipy distributions, or to parameters of a search space of
    Pitchpipe such as `{"_type": "loguniform", "_value": [1e-3, 10]}`; a list of such dicts is a choice between them.
    `n_iter` candidates are tried, or fewer if the space has no more. `tuner` (with `tuner_args`) is a tuner of
    Pitchpipe that does not pause trials. If `n_jobs` is a multiple of the number of folds, that many candidates are
    tried at once.

    `resource` stops hopeless candidates early. With the default `factor` of 3, each candidate is scored on a ninth of
    the resource, then on a third, then on all of it; it reaches the next stage only if it is among the best third of
    the candidates in this one. The resource is `n_samples`, the number of training samples, or an integer parameter of
    the estimator, which is at most `max_resource`. `cv_results_["fraction"]` says how much of it each row had.

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
        self.max_resource = max_resource
        self.factor = factor

    def _run_search(self, evaluate_candidates: Callable[..., _Results]) -> None:
        """Let the tuner propose candidates, a few at a time, and report their scores to it."""
        self._check_arguments()
        random = utils.check_random_state(self.random_state)
        space = _Space(self.param_distributions)
        tuner = self._make_tuner(space, int(random.randint(2**31 - 1)))
        evaluation = _Evaluation(self, evaluate_candidates, _Folds(self._checked_cv_orig, random))
        at_once = max(1, joblib.effective_n_jobs(self.n_jobs) // self.n_splits_)
        for first in range(0, self.n_iter, at_once):
            ids = list(range(first, min(first + at_once, self.n_iter)))
            proposed = dict(zip(ids, tuner.generate_multiple_parameters(ids), strict=False))
            if proposed:
                self._try(proposed, tuner, space, evaluation)
            if len(proposed) < len(ids):
                break
        if evaluation.failure is not None:
            raise evaluation.failure

    def _try(
        self, proposed: dict[int, Parameters], tuner: Tuner, space: _Space, evaluation: _Evaluation
    ) -> None:
        """Score some candidates, on more and more of the resource, and tell the tuner how they ended."""
        left = proposed
        for stage in range(len(evaluation.fractions)):
            is_last = stage + 1 == len(evaluation.fractions)
            scores = evaluation.scores([space.decode(values) for values in left.values()], stage)
            kept: dict[int, Parameters] = {}
            for (number, parameters), score in zip(left.items(), scores, strict=True):
                if evaluation.continues(score, stage):
                    kept[number] = parameters
                if not is_last and tuner.wants_periodical:
                    tuner.receive_intermediate_result(
                        number, parameters, score, trial_job_id=str(number), sequence=stage
                    )
                _tell(tuner, number, parameters, score, is_last, number in kept)
            left = kept
            if not left:
                break

    def _check_arguments(self) -> None:
        if isinstance(self.scoring, list | tuple | dict) and not isinstance(self.refit, str):
            raise ValueError("with several metrics, refit must name the one to maximise")
        if self.factor <= 1:
            raise ValueError(f"factor must be greater than 1, not {self.factor}")
        if self.resource is None or self.resource == "n_samples":
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

    @staticmethod
    def _select_best_index(refit: Any, refit_metric: str, results: _Results) -> int:
        """Return the row of the best candidate among those that had the whole resource."""
        parent = model_selection.RandomizedSearchCV
        if callable(refit) or "fraction" not in results:
            return parent._select_best_index(refit, refit_metric, results)
        scores = np.where(results["fraction"] == 1, results[f"mean_test_{refit_metric}"], np.nan)
        return int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))


def _tell(
    tuner: Tuner, number: int, parameters: Parameters, score: float, is_last: bool, is_kept: bool
) -> None:
    """Tell the tuner how a candidate ended, if it did."""
    if is_last and not math.isnan(score):
        tuner.receive_trial_result(number, parameters, score)
        tuner.trial_end(number, True)
    elif is_last or not is_kept:
        if not math.isnan(score):
            tuner.trial_stopped(number)
        tuner.trial_end(number, False)


class _Evaluation:
    """Scores candidates by cross-validation on a part of the resource, and decides which continue."""

    def __init__(self, search: PitchpipeSearchCV, evaluate: Callable[..., _Results], folds: _Folds) -> None:
        self._search, self._evaluate, self._folds = search, evaluate, folds
        stages = 1 if search.resource is None else _STAGES
        self.fractions = [float(search.factor) ** -power for power in reversed(range(stages))]
        self._rungs: list[list[float]] = [[] for _ in self.fractions]
        self._has_results = False
        self.failure: ValueError | None = None  # of the first fits, while no fit has succeeded

    def scores(self, candidates: list[Parameters], stage: int) -> list[float]:
        """Return the mean scores of candidates; NaN for one whose fit failed."""
        fraction, resource = self.fractions[stage], self._search.resource
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
            if "fits failed" not in str(error):
                raise
            return self._without_results(error, len(candidates))
        self.failure, self._has_results = None, True
        return [float(score) for score in results[self._metric(results)][-len(candidates) :]]

    def _without_results(self, error: ValueError, count: int) -> list[float]:
        """Warn that all fits of some candidates failed. The search raises it at the end if no fit has succeeded."""
        if not self._has_results:
            self.failure = self.failure or error
        warnings.warn(str(error), exceptions.FitFailedWarning, stacklevel=2)
        return [math.nan] * count

    def continues(self, score: float, stage: int) -> bool:
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
    """The folds of a splitter, the same in every call, with only a `fraction` of the training samples."""

    def __init__(self, splitter: Any, random: Any) -> None:
        self._splitter, self._random = splitter, random
        self._folds: list[tuple[Any, Any, Any]] = []
        self.fraction = 1.0

    def split(self, *data: Any, **params: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the indices of training and test samples. A larger fraction contains the samples of a smaller one."""
        if not self._folds:
            self._folds = [
                (train, self._random.permutation(len(train)), test)
                for train, test in self._splitter.split(*data, **params)
            ]
        for train, order, test in self._folds:
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
