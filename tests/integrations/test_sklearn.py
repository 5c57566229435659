"""`PitchpipeSearchCV` is an estimator, takes the place of scikit-learn's searches, and stops candidates early."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from ..lazy import Lazy

datasets, exceptions = Lazy("sklearn.datasets"), Lazy("sklearn.exceptions")
linear_model, svm = Lazy("sklearn.linear_model"), Lazy("sklearn.svm")
model_selection, preprocessing = Lazy("sklearn.model_selection"), Lazy("sklearn.preprocessing")
SPACE = {"C": {"_type": "loguniform", "_value": [1e-3, 100]}, "kernel": ["linear", "rbf"]}


@cache
def iris() -> Any:
    return datasets.load_iris(return_X_y=True)


def search(estimator: Any = None, space: Any = SPACE, **options: Any) -> Any:
    options = {"random_state": 0, "cv": 3, **options}
    return Lazy("pitchpipe.integrations.sklearn").PitchpipeSearchCV(
        svm.SVC() if estimator is None else estimator, space, **options
    )


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.parametrize(
    ("model", "space"), [("Ridge", {"alpha": [0.1, 1.0]}), ("LogisticRegression", {"C": [0.1, 1.0]})]
)
def test_is_an_estimator(model: str, space: Any) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    found = search(
        getattr(linear_model, model)(), space, n_iter=2, cv=2, error_score="raise", random_state=None
    )
    # scikit-learn's own searches over this estimator fail it as well.
    known = {"check_supervised_y_2d": "no DataConversionWarning"} if model == "Ridge" else {}
    outcomes = check_estimator(found, expected_failed_checks=known, on_skip=None)
    assert {"passed", "xfail", "skipped"} >= {each["status"] for each in outcomes}
    assert len(outcomes) > 60


def test_learns_and_refits_the_best() -> None:
    found = search(n_iter=12).fit(*iris())
    assert found.best_score_ == max(found.cv_results_["mean_test_score"]) > 0.97
    assert found.best_estimator_.get_params()["C"] == found.best_params_["C"]
    assert found.score(*iris()) > 0.95
    assert len(found.cv_results_["params"]) == 12


def test_same_seed_same_search() -> None:
    one, other = (search(n_iter=6).fit(*iris()).cv_results_["params"] for _ in range(2))
    assert one == other


def test_tuner_hears_of_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    from pitchpipe.tuners import TPETuner

    heard: list[float] = []
    receive = TPETuner.receive_trial_result

    def listen(self: Any, number: int, parameters: Any, value: float, **more: Any) -> None:
        heard.append(value)
        receive(self, number, parameters, value, **more)

    monkeypatch.setattr(TPETuner, "receive_trial_result", listen)
    found = search(n_iter=4, tuner="TPE").fit(*iris())
    assert heard == list(found.cv_results_["mean_test_score"])


def test_grid_takes_the_place_of_scikit_learns() -> None:
    grid = [{"kernel": ["rbf"], "gamma": [0.01, 0.1], "C": [1, 10]}, {"kernel": ["linear"], "C": [1, 10]}]
    ours = search(space=grid, tuner="GridSearch", n_iter=100).fit(*iris())
    theirs = model_selection.GridSearchCV(svm.SVC(), grid, cv=3).fit(*iris())
    assert ours.best_score_ == theirs.best_score_
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    tried = [sorted(params.items()) for params in ours.cv_results_["params"]]
    assert sorted(tried) == sorted(sorted(params.items()) for params in theirs.cv_results_["params"])


def test_distributions_of_scipy_are_those_of_the_randomized_search() -> None:
    from scipy import stats

    space = {"max_depth": stats.randint(2, 9), "ccp_alpha": stats.loguniform(1e-4, 1e-1)}
    found = search(
        Lazy("sklearn.tree").DecisionTreeClassifier(random_state=0), space, n_iter=20, tuner="Random"
    ).fit(*iris())
    assert isinstance(found, model_selection.RandomizedSearchCV)
    depths = [params["max_depth"] for params in found.cv_results_["params"]]
    assert all(type(depth) is int and 2 <= depth < 9 for depth in depths)
    assert len(set(depths)) > 3
    alphas = [params["ccp_alpha"] for params in found.cv_results_["params"]]
    assert min(alphas) < 1e-3 < 1e-2 < max(alphas) <= 0.1


def test_estimators_and_nested_choices_are_values() -> None:
    pipeline = Lazy("sklearn.pipeline").Pipeline(
        [("scale", preprocessing.StandardScaler()), ("model", svm.SVC())]
    )
    kernel = [{"_name": "linear"}, {"_name": "rbf", "model__gamma": {"_type": "uniform", "_value": [0.1, 1]}}]
    space = {
        "scale": [preprocessing.StandardScaler(), preprocessing.MinMaxScaler()],
        "model__kernel": {"_type": "choice", "_value": kernel},
    }
    found = search(pipeline, space, n_iter=8).fit(*iris())
    for params in found.cv_results_["params"]:
        assert ("model__gamma" in params) == (params["model__kernel"] == "rbf")
    assert isinstance(
        found.best_estimator_["scale"], preprocessing.StandardScaler | preprocessing.MinMaxScaler
    )


def test_jobs_share_the_folds_of_several_candidates() -> None:
    with Lazy("joblib").parallel_config("threading"):
        alone, together = (search(n_iter=4, tuner="Random", n_jobs=jobs).fit(*iris()) for jobs in (1, 6))
    assert alone.cv_results_["params"] == together.cv_results_["params"]
    assert list(alone.cv_results_["mean_test_score"]) == list(together.cv_results_["mean_test_score"])


def test_several_metrics_need_one_to_maximise() -> None:
    found = search(n_iter=3, scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(*iris())
    assert found.best_score_ == max(found.cv_results_["mean_test_f1_macro"])
    with pytest.raises(ValueError, match="refit must name the one"):
        search(n_iter=3, scoring=["accuracy", "f1_macro"], refit=False).fit(*iris())

    def both(estimator: Any, X: Any, y: Any) -> dict[str, float]:
        return {"a": estimator.score(X, y), "b": 0.0}

    with pytest.raises(ValueError, match="refit must name the one"):
        search(n_iter=3, scoring=both, refit=False).fit(*iris())


def test_groups_reach_the_splitter_and_random_folds_are_made_once() -> None:
    groups = np.arange(len(iris()[1])) % 5
    assert search(n_iter=3, cv=model_selection.GroupKFold(3)).fit(*iris(), groups=groups).n_splits_ == 3
    same = {"C": {"_type": "uniform", "_value": [1, 1.0001]}}
    found = search(space=same, n_iter=5, cv=model_selection.ShuffleSplit(2)).fit(*iris())
    assert len(set(found.cv_results_["mean_test_score"])) == 1


def test_candidate_whose_fit_fails_is_no_result() -> None:
    with pytest.warns(exceptions.FitFailedWarning, match="parameter of SVC"):
        found = search(space={"C": [-1.0, 1.0, 2.0]}, n_iter=3).fit(*iris())
    assert sorted(params["C"] for params in found.cv_results_["params"]) == [1.0, 2.0]


def test_search_without_any_result_raises_the_first_failure() -> None:
    with (
        pytest.warns(exceptions.FitFailedWarning),
        pytest.raises(ValueError, match=r"(?s)All the 3 fits failed.*Got -1.0 instead"),
    ):
        search(space={"C": [-1.0]}, n_iter=3).fit(*iris())
    with pytest.raises(ValueError, match=r"Got -1\.0 instead"):
        search(space={"C": [-1.0]}, error_score="raise").fit(*iris())


@pytest.mark.parametrize("resource", ["n_samples", "n_estimators"])
def test_hopeless_candidates_are_stopped_early(resource: str) -> None:
    X, y = datasets.load_digits(n_class=3, return_X_y=True)
    size = {"n_samples": 4, "n_estimators": 18}[resource]
    estimator = Lazy("sklearn.ensemble").GradientBoostingClassifier(
        n_estimators=size, max_depth=2, random_state=0
    )
    space = {"learning_rate": {"_type": "loguniform", "_value": [1e-4, 1]}}
    options = {"resource": resource, "max_resource": 18 if resource == "n_estimators" else None}
    found = search(estimator, space, n_iter=9, **options).fit(X[:200], y[:200])
    fractions = found.cv_results_["fraction"]
    tried = [int((fractions == part).sum()) for part in sorted(set(fractions))]
    assert tried[0] == 9 > tried[1] >= tried[2] >= 1
    assert fractions[found.best_index_] == 1
    assert found.best_score_ == found.cv_results_["mean_test_score"][fractions == 1].max()
    if resource == "n_estimators":
        assert sorted({params["n_estimators"] for params in found.cv_results_["params"]}) == [2, 6, 18]
        assert found.best_estimator_.n_estimators == 18


def test_larger_part_of_the_samples_has_all_of_a_smaller_one() -> None:
    seen: list[set[float]] = []

    class Watching(linear_model.Ridge):
        def fit(self, X: Any, y: Any) -> Any:
            seen.append(set(X[:, 0]))
            return super().fit(X, y)

    X = np.arange(90.0).reshape(-1, 1)
    search(Watching(), {"alpha": [1.0]}, n_iter=1, cv=2, resource="n_samples").fit(X, X[:, 0])
    assert [len(samples) for samples in seen] == [5, 5, 15, 15, 45, 45, 90]
    assert seen[0] < seen[2] < seen[4]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tuner": "TPA"}, "tuner: .*TPE"),
        ({"tuner": "TPE", "tuner_args": {"sead": 1}}, "tuner_args: .*'seed'"),
        ({"tuner": "Hyperband", "tuner_args": {"R": 9}}, "Hyperband pauses trials"),
        ({"space": {"C": 1.0}}, "C: 1.0 is neither a list"),
        ({"space": {"C": {"_type": "unifrom", "_value": [0, 1]}}}, "'uniform'"),
        ({"space": {"C": []}}, "C"),
        ({"resource": "max_itre"}, "SVC has no parameter 'max_itre'"),
        ({"resource": "max_iter"}, "max_resource must say"),
        ({"resource": "n_samples", "factor": 1}, "factor must be greater than 1"),
        ({"resource": "max_iter", "max_resource": 9, "space": {"max_iter": [1, 2]}}, "cannot be searched"),
        ({"n_iter": 0}, "n_iter"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_fitted(options: dict[str, Any], sentence: str) -> None:
    class Unfitted(svm.SVC):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            raise AssertionError("fitted")

    refused = search(**options)
    refused.estimator.__class__ = type("SVC", (Unfitted,), {})
    with pytest.raises((ValueError, TypeError), match=sentence):
        refused.fit(*iris())


needs_folds = pytest.mark.skipif(
    "not __import__('pitchpipe.integrations.sklearn').integrations.sklearn._HAS_FOLDS",
    reason="an older scikit-learn scores all folds at once",
)


@needs_folds
def test_candidates_are_scored_fold_by_fold() -> None:
    space = {"C": {"_type": "loguniform", "_value": [1e-4, 100]}}
    found = search(space=space, n_iter=12, cv=5, resource="folds").fit(*iris())
    folds, means = found.cv_results_["folds"], found.cv_results_["mean_test_score"]
    assert folds[0] == 5 > min(folds) >= 1
    assert list(np.isnan(means)) == [count < 5 for count in folds]
    for count, *scores in zip(
        folds, *(found.cv_results_[f"split{fold}_test_score"] for fold in range(5)), strict=True
    ):
        assert list(np.isnan(scores)) == [False] * count + [True] * (5 - count)
    assert found.best_score_ == np.nanmax(means)
    assert (found.cv_results_["rank_test_score"][found.best_index_], found.n_splits_) == (1, 5)
    same = model_selection.cross_val_score(svm.SVC(C=found.best_params_["C"]), *iris(), cv=5)
    assert found.best_score_ == pytest.approx(same.mean())


@needs_folds
@pytest.mark.parametrize(
    ("splitter", "more"),
    [
        ("TimeSeriesSplit", {}),
        ("GroupKFold", {"groups": np.arange(150) % 7}),
        ("ShuffleSplit", {}),
        ("KFold", {}),
    ],
)
def test_folds_of_any_kind_are_scored_one_by_one(splitter: str, more: dict[str, Any]) -> None:
    order = np.random.default_rng(0).permutation(150)
    X, y = (each[order] for each in iris())
    cv = getattr(model_selection, splitter)(4)
    found = search(n_iter=6, cv=cv, resource="folds", scoring="accuracy", return_train_score=True).fit(
        X, y, **more
    )
    assert max(found.cv_results_["folds"]) == 4
    assert len(found.cv_results_["params"]) == 6
    assert np.isfinite(found.cv_results_["mean_train_score"][found.best_index_])


@needs_folds
def test_processes_score_folds() -> None:
    from sklearn.svm import SVC

    found = search(SVC(), n_iter=4, resource="folds", n_jobs=2).fit(*iris())
    assert max(found.cv_results_["folds"]) == 3


@needs_folds
def test_search_that_was_interrupted_can_be_repeated() -> None:
    def interrupted(*_: Any) -> float:
        raise KeyboardInterrupt

    again = search(n_iter=4, resource="folds", scoring=interrupted)
    with pytest.raises(KeyboardInterrupt):
        again.fit(*iris())
    again.set_params(scoring="accuracy", resource=None).fit(*iris())
    assert "folds" not in again.cv_results_


@needs_folds
def test_candidate_that_fails_in_a_fold_is_scored_no_further() -> None:
    class Picky(svm.SVC):
        def fit(self, X: Any, y: Any) -> Any:
            if self.C > 5 and list(X[0]) != list(
                iris()[0][0]
            ):  # in all folds but those with the first sample
                raise ValueError("not this fold")
            return super().fit(X, y)

    with pytest.warns(exceptions.FitFailedWarning):
        found = search(Picky(), {"C": [1.0, 2.0, 10.0]}, n_iter=3, cv=3, resource="folds").fit(*iris())
    assert found.best_params_["C"] < 5


@pytest.mark.parametrize("resource", [None, "folds"])
def test_candidates_that_are_reshuffled_have_other_folds(resource: str | None) -> None:
    same = {"C": {"_type": "uniform", "_value": [1, 1.0001]}}
    cv = model_selection.StratifiedKFold(3, shuffle=True, random_state=0)
    for is_reshuffled in (False, True):
        found = search(space=same, n_iter=5, cv=cv, resource=resource, reshuffle=is_reshuffled).fit(*iris())
        assert (len(set(found.cv_results_["split0_test_score"])) > 1) == is_reshuffled
    for fixed in (3, model_selection.TimeSeriesSplit(3), model_selection.KFold(3)):
        with pytest.raises(ValueError, match="does not shuffle"):
            search(cv=fixed, reshuffle=True).fit(*iris())


def test_several_metrics_are_scored_fold_by_fold() -> None:
    options = {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro", "resource": "folds", "n_jobs": 2}
    with Lazy("joblib").parallel_config("threading"):
        found = search(n_iter=5, cv=4, **options).fit(*iris())
    assert found.best_score_ == np.nanmax(found.cv_results_["mean_test_f1_macro"])
