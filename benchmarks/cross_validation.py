"""Time to the same model by cross-validation: `PitchpipeSearchCV` beside scikit-learn's and Optuna's searches.

    python benchmarks/cross_validation.py [--seeds 3] [--iterations 40] [--tasks digits ...]

Needs scikit-learn 1.9, optuna, optuna-integration and pandas. Each search runs as its users run it, with
the same folds, one after another on one core. A scorer notes when each fold of each candidate was scored; a candidate
counts when it has all folds with all samples. For each task the table has the mean score at the end, its score on a
third of the data that no search saw, the time taken, and the time until the search had the score that the randomized
search has at its end; all are medians over the seeds, and times are parts of the time of the randomized search.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from scipy import stats
from sklearn import (
    datasets,
    linear_model,
    model_selection,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  (makes the class importable)

from pitchpipe.integrations.sklearn import PitchpipeSearchCV

FOLDS = 5
Task = tuple[Any, Any, dict[str, Any]]


def tasks() -> dict[str, Callable[[], Task]]:
    """Return what is searched: data, an estimator, and the distributions of its parameters."""
    log, real, whole = stats.loguniform, stats.uniform, stats.randint
    scaled = lambda model: pipeline.make_pipeline(preprocessing.StandardScaler(), model)  # noqa: E731
    return {
        "digits, SVC": lambda: (
            datasets.load_digits(return_X_y=True),
            svm.SVC(),
            {"C": log(1e-3, 1e3), "gamma": log(1e-6, 1), "kernel": ["rbf", "poly", "sigmoid"]},
        ),
        "breast cancer, logistic": lambda: (
            datasets.load_breast_cancer(return_X_y=True),
            scaled(linear_model.LogisticRegression(solver="saga", l1_ratio=0.5, max_iter=200)),
            {"logisticregression__C": log(1e-4, 1e4), "logisticregression__l1_ratio": real(0, 1)},
        ),
        "diabetes, boosting": lambda: (
            datasets.load_diabetes(return_X_y=True),
            HistGradientBoostingRegressor(max_iter=60, random_state=0),
            {
                "learning_rate": log(1e-3, 1),
                "max_leaf_nodes": whole(2, 64),
                "min_samples_leaf": whole(1, 100),
                "l2_regularization": log(1e-6, 1e3),
            },
        ),
        "two moons, neighbours": lambda: (
            datasets.make_moons(3000, noise=0.35, random_state=0),
            neighbors.KNeighborsClassifier(),
            {"n_neighbors": whole(1, 400), "weights": ["uniform", "distance"], "p": real(1, 3)},
        ),
        "made classes, forest": lambda: (
            datasets.make_classification(1500, 30, n_informative=6, flip_y=0.1, random_state=0),
            RandomForestClassifier(40, random_state=0),
            {"max_depth": whole(1, 30), "max_features": real(0.05, 0.95), "min_samples_leaf": whole(1, 100)},
        ),
        "wine, network": lambda: (
            datasets.load_wine(return_X_y=True),
            scaled(neural_network.MLPClassifier((16,), max_iter=60, random_state=0)),
            {
                "mlpclassifier__alpha": log(1e-6, 1e2),
                "mlpclassifier__learning_rate_init": log(1e-5, 1),
                "mlpclassifier__activation": ["relu", "tanh", "logistic"],
            },
        ),
    }


@dataclass
class Notes:
    """What a scorer sees: the time and score of each fold of each candidate."""

    whole: int  # the fewest samples of a test fold that had all
    began: float = field(default_factory=time.perf_counter)
    folds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    best: list[tuple[float, float]] = field(default_factory=list)  # seconds, and the best mean so far

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Score an estimator, as it does itself."""
        score = float(estimator.score(X, y))
        if self.whole <= len(y) <= self.whole + 2:
            scores = self.folds[repr(sorted(estimator.get_params().items(), key=str))]
            scores.append(score)
            if len(scores) == FOLDS and (not self.best or np.mean(scores) > self.best[-1][1]):
                self.best.append((time.perf_counter() - self.began, float(np.mean(scores))))
        return score

    def reached(self, score: float) -> float:
        """Return after how many seconds the search had this score; infinite if it never had."""
        return next((second for second, best in self.best if best >= score - 1e-12), math.inf)


def searches() -> dict[str, Callable[..., Any]]:
    """Return the searches: functions of the estimator, the distributions, and options that all have."""

    def optuna(estimator: Any, space: dict[str, Any], n_iter: int, random_state: int, **options: Any) -> Any:
        import optuna as library
        from optuna_integration import OptunaSearchCV

        library.logging.set_verbosity(library.logging.ERROR)
        found = {name: _distribution(library.distributions, given) for name, given in space.items()}
        return OptunaSearchCV(estimator, found, n_trials=n_iter, random_state=random_state, **options)

    def halving(estimator: Any, space: dict[str, Any], n_iter: int, **options: Any) -> Any:
        return model_selection.HalvingRandomSearchCV(estimator, space, n_candidates=n_iter, **options)

    def by_folds(*given: Any, **options: Any) -> Any:
        return PitchpipeSearchCV(*given, resource="folds", **options)

    return {
        "RandomizedSearchCV": model_selection.RandomizedSearchCV,
        "HalvingRandomSearchCV": halving,
        "OptunaSearchCV": optuna,
        "PitchpipeSearchCV": PitchpipeSearchCV,
        "PitchpipeSearchCV, by folds": by_folds,
    }


def _distribution(library: Any, given: Any) -> Any:
    if isinstance(given, list):
        return library.CategoricalDistribution(given)
    low, high = (float(end) for end in given.support())
    if hasattr(given.dist, "pmf"):
        return library.IntDistribution(int(low), int(high))
    return library.FloatDistribution(low, high, log=given.dist.name in ("loguniform", "reciprocal"))


def measure(task: Task, make: Callable[..., Any], seed: int, iterations: int) -> tuple[Notes, float, float]:
    """Run one search; return what its scorer saw, the seconds it took, and the score on the rest of the data."""
    (X, y), estimator, space = task
    classes = y if np.issubdtype(y.dtype, np.integer) else None
    X, rest, y, truth = model_selection.train_test_split(
        X, y, test_size=1 / 3, random_state=seed, stratify=classes
    )
    kind = model_selection.KFold if classes is None else model_selection.StratifiedKFold
    notes = Notes(len(y) // FOLDS - 1)
    search = make(
        estimator,
        space,
        n_iter=iterations,
        random_state=seed,
        cv=kind(FOLDS, shuffle=True, random_state=0),
        scoring=notes,
    )
    notes.began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    return notes, time.perf_counter() - notes.began, float(search.best_estimator_.score(rest, truth))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--tasks", nargs="+", default=list(tasks()), choices=tasks())
    asked = parser.parse_args()
    print("| task | search | score | on the rest | time | time to the score of the randomized search |")
    print("|---|---|---:|---:|---:|---:|")
    for name in asked.tasks:
        rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        for seed in range(asked.seeds):
            task = tasks()[name]()
            goal, whole = math.nan, math.nan
            for which, make in searches().items():
                notes, seconds, rest = measure(task, make, seed, asked.iterations)
                score = notes.best[-1][1]
                if which == "RandomizedSearchCV":
                    goal, whole = score, seconds
                rows[which].append((score, rest, seconds / whole, notes.reached(goal) / whole))
        for which, found in rows.items():
            score, rest, seconds, reached = (median(column) for column in zip(*found, strict=True))
            print(
                f"| {name} | {which} | {score:.4f} | {rest:.4f} | {seconds:.2f} | {reached:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
