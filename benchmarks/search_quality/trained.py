"""Ordinary tasks that train a model of scikit-learn, or a small network, on bundled and made data."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from ordinary import flaky, integers, log, noisy, option, pick, samples, stepped, task, uniform

Arrays = tuple[np.ndarray, np.ndarray]
_MADE: dict[str, dict[str, Any]] = {
    "friedman1": {"n_samples": 700, "noise": 1.0},
    "friedman2": {"n_samples": 700, "noise": 20.0},
    "friedman3": {"n_samples": 700, "noise": 0.05},
    "blobs": {"n_samples": 600, "centers": 7, "cluster_std": 1.2},
    "moons": {"n_samples": 900, "noise": 0.25},
    "circles": {"n_samples": 900, "noise": 0.15, "factor": 0.6},
    "regression": {"n_samples": 400, "n_features": 60, "n_informative": 8, "noise": 20.0},
    "classification": {"n_samples": 900, "n_informative": 6, "n_classes": 3, "flip_y": 0.05},
    "rare": {"n_samples": 900, "n_informative": 4, "weights": [0.93], "flip_y": 0.02},
}


@cache
def _data(name: str) -> Arrays:
    from sklearn import datasets

    if name in _MADE:
        maker = getattr(datasets, f"make_{name.replace('rare', 'classification')}")
        return maker(random_state=1, **_MADE[name])
    inputs, outputs = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(outputs))
    return inputs[order], outputs[order]


def _held_out(
    model: Any, data: str | Arrays, train: int = 150, valid: int = 1000, of: str = "error"
) -> float:
    """Fit a model to the first points and return its error, its loss or its squared error on the next."""
    from sklearn import metrics

    inputs, outputs = _data(data) if isinstance(data, str) else data
    model.fit(inputs[:train], outputs[:train])
    inputs, outputs = inputs[train : train + valid], outputs[train : train + valid]
    if of == "loss":
        return metrics.log_loss(outputs, model.predict_proba(inputs))
    if of == "auc":
        return 1 - metrics.roc_auc_score(outputs, model.predict_proba(inputs)[:, 1])
    found = model.predict(inputs)
    if of == "squares":
        return float(np.mean((found - outputs) ** 2))
    return float(np.mean(found != outputs))


def _named(nested: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    inner = dict(nested)
    return inner.pop("_name"), inner


_KERNELS = pick(
    option("linear"),
    option("rbf", gamma=uniform(1e-5, 10)),
    option("poly", degree=integers(2, 7), coef0=uniform(-5, 5), gamma=uniform(1e-5, 10)),
    option("sigmoid", coef0=uniform(-5, 5), gamma=uniform(1e-5, 10)),
)


@task("svc-digits", "digits", 200, 300, C=uniform(0.001, 1000), gamma=uniform(1e-6, 1), cache_size=pick(100, 200),
      kernel=pick("linear", "poly", "rbf", "sigmoid"), tol=uniform(1e-5, 1e-1))  # fmt: skip
@task("svc-moons", "moons", 120, 700, report=samples(80), C=log(1e-4, 1e6), gamma=log(1e-6, 1e4))
@task("svc-circles", "circles", 100, 100, C=uniform(0, 100), gamma=uniform(0, 100), shrinking=pick(True, False),
      probability=pick(False), class_weight=pick(None, "balanced"))  # fmt: skip
def _svc(data: str, train: int, valid: int, **settings: Any) -> float:
    from sklearn.svm import SVC

    settings.pop("probability", None)
    return _held_out(SVC(max_iter=3000, **settings), data, train, valid)


@task("svc-wine", "wine", 80, C=log(1e-3, 1e3), kernel=_KERNELS)
@task(
    "svc-cancer",
    "cancer",
    100,
    C=uniform(0.1, 500),
    kernel=_KERNELS,
    scale=pick("none", "standard", "minmax"),
)
def _nested_svc(data: str, train: int, C: float, kernel: dict[str, Any], scale: str = "none") -> float:
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    name, inner = _named(kernel)
    model = SVC(C=C, kernel=name, max_iter=3000, **inner)
    return _held_out(make_pipeline(_scaler(scale), model), data.replace("cancer", "breast_cancer"), train)


def _scaler(name: str) -> Any:
    from sklearn import preprocessing as p

    scalers = {"standard": p.StandardScaler, "minmax": p.MinMaxScaler, "robust": p.RobustScaler}
    scalers |= {"quantile": lambda: p.QuantileTransformer(n_quantiles=50), "normalizer": p.Normalizer}
    return scalers[name]() if name != "none" else "passthrough"


@task("svr-diabetes", "diabetes", C=uniform(0.001, 1000), epsilon=uniform(0, 100), gamma=uniform(1e-4, 100))
@task("svr-friedman", "friedman2", C=log(1e-2, 1e5), epsilon=uniform(0, 50), gamma=log(1e-8, 10),
      shrinking=pick(True, False))  # fmt: skip
def _svr(data: str, **settings: Any) -> float:
    from sklearn.svm import SVR

    return _held_out(SVR(max_iter=3000, **settings), data, of="squares")


@task("kernel-ridge", "friedman1", alpha=uniform(1e-6, 100), kernel=_KERNELS)
def _kernel_ridge(data: str, alpha: float, kernel: dict[str, Any]) -> float:
    from sklearn.kernel_ridge import KernelRidge

    name, inner = _named(kernel)
    return _held_out(KernelRidge(alpha=alpha, kernel=name, **inner), data, 120, of="squares")


@task("knn-digits", "digits", 150, 150, n_neighbors=stepped(1, 100), weights=pick("uniform", "distance"),
      p=uniform(1, 10),
      leaf_size=stepped(5, 100))  # fmt: skip
@task("knn-cancer", "breast_cancer", 120, 300, n_neighbors=integers(1, 200), scale=pick("none", "standard",
      "minmax", "robust"),
      metric=pick("euclidean", "manhattan", "chebyshev", "cosine", "mahalanobis"),
      weights=pick("uniform", "distance"))  # fmt: skip
@task("knn-iris", "iris", 75, 75, report=samples(30), n_neighbors=stepped(1, 60), p=uniform(0.1, 6),
      weights=pick("uniform", "distance"))  # fmt: skip
def _neighbours(
    data: str, train: int, valid: int, n_neighbors: float, scale: str = "none", **settings: Any
) -> float:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    settings = {k: int(v) if k == "leaf_size" else v for k, v in settings.items()}
    model = KNeighborsClassifier(int(n_neighbors), **settings)
    return _held_out(make_pipeline(_scaler(scale), model), data, train, valid)


@task("logistic-cancer", "breast_cancer", "error", C=uniform(1e-3, 1000), tol=log(1e-6, 1e-1),
      l1_ratio=pick(0.0, 0.5, 1.0),
      solver=pick("lbfgs", "liblinear", "newton-cg", "saga", "newton-cholesky"), max_iter=stepped(10, 200,
      10))  # fmt: skip
@task("logistic-classes", "classification", "loss", C=uniform(1e-4, 1e4), l1_ratio=uniform(0, 1),
      max_iter=stepped(5, 100, 5),
      solver=pick("saga"), class_weight=pick(None, "balanced"))  # fmt: skip
def _logistic(data: str, of: str, max_iter: float, **settings: Any) -> float:
    from sklearn.linear_model import LogisticRegression

    return _held_out(LogisticRegression(max_iter=int(max_iter), random_state=0, **settings), data, of=of)


_SCHEDULES = pick(
    option("optimal"),
    option("constant", eta0=uniform(1e-5, 1)),
    option("invscaling", eta0=uniform(1e-5, 1), power_t=uniform(0.05, 1)),
    option("adaptive", eta0=uniform(1e-5, 1)),
)


@task("sgd-digits", "digits", report=samples(150), alpha=log(1e-8, 1), learning_rate=_SCHEDULES,
      loss=pick("hinge", "log_loss", "modified_huber", "perceptron"), max_iter=integers(1, 40),
      average=pick(True, False))  # fmt: skip
@task("sgd-classes", "classification", report=noisy(0.01), alpha=uniform(0, 1), learning_rate=_SCHEDULES,
      penalty=pick("l2", "l1", "elasticnet"), max_iter=integers(1, 60), early_stopping=pick(True, False))  # fmt: skip
def _sgd(data: str, learning_rate: dict[str, Any], **settings: Any) -> float:
    from sklearn.linear_model import SGDClassifier

    name, inner = _named(learning_rate)
    return _held_out(
        SGDClassifier(learning_rate=name, tol=None, random_state=0, **inner, **settings), data, 200, 600
    )


_TREE = {"max_depth": stepped(1, 50), "min_samples_leaf": integers(1, 60), "min_samples_split": integers(1, 100),
         "ccp_alpha": uniform(0, 0.2), "min_impurity_decrease": uniform(0, 0.1)}  # fmt: skip


@task(
    "tree-cancer",
    "DecisionTreeClassifier",
    "breast_cancer",
    "loss",
    **_TREE,
    criterion=pick("gini", "entropy"),
)
@task("tree-rare", "DecisionTreeClassifier", "rare", "auc", **_TREE, class_weight=pick(None, "balanced"))
@task("tree-regression", "DecisionTreeRegressor", "friedman1", "squares", **_TREE,
      criterion=pick("squared_error", "absolute_error", "friedman_mse", "mse"))  # fmt: skip
def _tree(kind: str, data: str, of: str, max_depth: float, **settings: Any) -> float:
    from sklearn import tree

    return _held_out(
        getattr(tree, kind)(max_depth=int(max_depth), random_state=0, **settings), data, 200, of=of
    )


_FOREST = {"n_estimators": stepped(1, 12), "max_depth": stepped(1, 40), "max_features": uniform(0.01, 1),
           "min_samples_leaf": integers(1, 40)}  # fmt: skip


@task(
    "forest-wine",
    "RandomForestClassifier",
    "wine",
    "error",
    **_FOREST,
    criterion=pick("gini", "entropy", "log_loss"),
)
@task("forest-classes", "ExtraTreesClassifier", "classification", "loss", report=noisy(0.02), **_FOREST,
      bootstrap=pick(True, False), class_weight=pick(None, "balanced"))  # fmt: skip
@task("forest-regression", "ExtraTreesRegressor", "friedman1", "squares", **_FOREST, max_samples=uniform(0.05, 1),
      bootstrap=pick(True, False))  # fmt: skip
def _forest(kind: str, data: str, of: str, **settings: Any) -> float:
    from sklearn import ensemble

    settings |= {name: int(settings[name]) for name in ("n_estimators", "max_depth")}
    return _held_out(
        getattr(ensemble, kind)(random_state=0, **settings), data, 100 if data == "wine" else 150, of=of
    )


_BOOSTING = {"learning_rate": uniform(0.0001, 2), "n_estimators": stepped(1, 30), "max_depth": stepped(1, 12),
             "subsample": uniform(0.05, 1), "min_samples_leaf": integers(1, 50)}  # fmt: skip


@task("boosting-diabetes", "GradientBoostingRegressor", "diabetes", "squares", **_BOOSTING,
      loss=pick("squared_error", "absolute_error", "huber", "quantile"))  # fmt: skip
@task(
    "boosting-friedman", "GradientBoostingRegressor", "friedman3", "squares", report=flaky(0.08), **_BOOSTING
)
@task(
    "boosting-cancer",
    "GradientBoostingClassifier",
    "breast_cancer",
    "loss",
    **_BOOSTING,
    max_features=uniform(0.05, 1),
)
def _boosting(kind: str, data: str, of: str, **settings: Any) -> float:
    from sklearn import ensemble

    settings |= {name: int(settings[name]) for name in ("n_estimators", "max_depth")}
    return _held_out(getattr(ensemble, kind)(random_state=0, **settings), data, 120, of=of)


@task("mlp-digits", hidden=stepped(1, 64), learning_rate_init=uniform(1e-5, 1), alpha=log(1e-8, 10),
      momentum=uniform(0, 1),
      solver=pick("sgd", "adam", "lbfgs"), activation=pick("relu", "tanh", "logistic", "identity"),
      max_iter=integers(1, 16), batch_size=pick(16, 32, 64, 128, 256))  # fmt: skip
def _perceptron(hidden: float, **settings: Any) -> float:
    from sklearn.neural_network import MLPClassifier

    return _held_out(MLPClassifier([int(hidden)], random_state=0, **settings), "digits", 200, 400)


_NETWORK = {"width": integers(1, 40), "decay": uniform(0, 0.1), "scale": uniform(0.001, 5),
            "batch": pick(8, 16, 32, 64), "activation": pick("relu", "tanh")}  # fmt: skip
_OPTIMISERS = pick(
    option("sgd", lr=uniform(1e-5, 2)),
    option("momentum", lr=uniform(1e-5, 2), momentum=uniform(0, 1)),
    option("adam", lr=uniform(1e-5, 1), beta1=uniform(0, 0.999), beta2=uniform(0, 0.9999)),
)


@task("network-moons", "moons", report=noisy(0.01), **_NETWORK, lr=log(1e-7, 100), momentum=uniform(0, 0.999))
@task("network-rare", "rare", report=samples(300), **_NETWORK, lr=uniform(1e-6, 1), momentum=uniform(0, 1))
@task("network-optimiser", "classification", **_NETWORK, optimiser=_OPTIMISERS)
def _network(
    data: str, width: int, decay: float, scale: float, batch: int, activation: str, **rates: Any
) -> float:
    """Train one hidden layer by hand for six epochs; return the error, with several classes the loss."""
    rates = _named(rates.pop("optimiser"))[1] if "optimiser" in rates else rates
    adam, lr = "beta1" in rates, rates["lr"]
    beta1, beta2 = (rates["beta1"], rates["beta2"]) if adam else (rates.get("momentum", 0.0), 0.0)
    inputs, labels = _data(data)
    rng, classes = np.random.default_rng(0), labels.max() + 1
    weights = [
        scale * rng.normal(size=(inputs.shape[1] + 1, width)),
        scale * rng.normal(size=(width, classes)),
    ]
    moments, squares = [0 * w for w in weights], [0 * w for w in weights]
    inputs = np.column_stack([inputs, np.ones(len(inputs))])
    targets = np.eye(classes)[labels]

    def forward(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hidden = some @ weights[0]
        hidden = np.tanh(hidden) if activation == "tanh" else np.maximum(hidden, 0)
        logits = hidden @ weights[1]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return hidden, odds / odds.sum(axis=1, keepdims=True)

    for step in range(1, 6 * 200 // batch + 1):
        rows = rng.integers(200, size=batch)
        hidden, odds = forward(inputs[rows])
        error = (odds - targets[rows]) / batch
        slope = 1 - hidden**2 if activation == "tanh" else hidden > 0
        gradients = [inputs[rows].T @ (error @ weights[1].T * slope), hidden.T @ error]
        for i, gradient in enumerate(gradients):
            full = gradient + decay * weights[i]
            moments[i] = beta1 * moments[i] + (1 - beta1 if adam else 1) * full
            squares[i] = beta2 * squares[i] + (1 - beta2) * full**2
            root = np.sqrt(squares[i] / (1 - beta2**step)) + 1e-8 if adam else 1
            weights[i] = weights[i] - lr * (moments[i] / (1 - beta1**step) if adam else moments[i]) / root
    odds = forward(inputs[200:])[1]
    if not np.isfinite(odds).all():
        raise FloatingPointError("diverged")
    if classes > 2:
        return float(-np.log(odds[np.arange(len(odds)), labels[200:]] + 1e-12).mean())
    return float((odds.argmax(axis=1) != labels[200:]).mean())


_REDUCERS = pick(
    option("none"),
    option("pca", n_components=stepped(1, 64), whiten=pick(True, False)),
    option("best", k=integers(1, 64)),
    option("nystroem", gamma=uniform(1e-5, 10), n_components=stepped(2, 100)),
)
_CLASSIFIERS = pick(
    option("knn", n_neighbors=integers(1, 50), weights=pick("uniform", "distance")),
    option("logistic", C=uniform(1e-4, 100)),
    option("svm", C=uniform(1e-3, 1000), gamma=uniform(1e-5, 10)),
    option("tree", max_depth=integers(1, 30), min_samples_leaf=integers(1, 30)),
    option("bayes", var_smoothing=log(1e-12, 1)),
    option("lda", solver=pick("svd", "lsqr", "eigen"), shrinkage=uniform(0, 1)),
)
_REGRESSORS = pick(
    option("ridge", alpha=uniform(0, 1000)),
    option("lasso", alpha=uniform(0, 100)),
    option("knn-regressor", n_neighbors=integers(1, 100)),
    option("svr", C=log(1e-3, 1e4), gamma=uniform(0, 10)),
    option("tree-regressor", max_depth=integers(1, 30), min_samples_leaf=integers(1, 60)),
)
_SCALERS = pick("none", "standard", "minmax", "robust", "quantile", "normalizer")


@task("pipeline-digits", "digits", "error", scale=_SCALERS, reduce=_REDUCERS, model=_CLASSIFIERS)
@task(
    "pipeline-wine", "wine", "error", report=samples(60), scale=_SCALERS, reduce=_REDUCERS, model=_CLASSIFIERS
)
@task("pipeline-classes", "classification", "loss", scale=_SCALERS, reduce=_REDUCERS, model=_CLASSIFIERS)
@task("pipeline-diabetes", "diabetes", "squares", scale=_SCALERS, reduce=_REDUCERS, model=_REGRESSORS)
def _pipeline(data: str, of: str, scale: str, reduce: dict[str, Any], model: dict[str, Any]) -> float:
    from sklearn import (
        decomposition,
        discriminant_analysis,
        feature_selection,
        kernel_approximation,
        linear_model,
        naive_bayes,
        neighbors,
        svm,
        tree,
    )
    from sklearn.pipeline import make_pipeline

    makers: dict[str, Any] = {
        "none": lambda: "passthrough",
        "pca": decomposition.PCA,
        "best": feature_selection.SelectKBest,
        "nystroem": lambda **k: kernel_approximation.Nystroem(random_state=0, **k),
        "knn": neighbors.KNeighborsClassifier,
        "logistic": lambda **k: linear_model.LogisticRegression(max_iter=50, **k),
        "svm": lambda **k: svm.SVC(max_iter=2000, probability=False, **k),
        "tree": lambda **k: tree.DecisionTreeClassifier(random_state=0, **k),
        "bayes": naive_bayes.GaussianNB,
        "lda": discriminant_analysis.LinearDiscriminantAnalysis,
        "ridge": linear_model.Ridge,
        "lasso": lambda **k: linear_model.Lasso(max_iter=300, **k),
        "knn-regressor": neighbors.KNeighborsRegressor,
        "svr": lambda **k: svm.SVR(max_iter=2000, **k),
        "tree-regressor": lambda **k: tree.DecisionTreeRegressor(random_state=0, **k),
    }
    steps = []
    for name, inner in (_named(reduce), _named(model)):
        numbers = {key: int(v) if key == "n_components" else v for key, v in inner.items()}
        steps.append(makers[name](**numbers))
    return _held_out(make_pipeline(_scaler(scale), *steps), data, 110, 200, of)


@task("lasso-regression", "Lasso", "regression", 1, alpha=uniform(0, 300), tol=log(1e-6, 1),
      max_iter=stepped(10, 500, 10),
      selection=pick("cyclic", "random"))  # fmt: skip
@task("elastic-diabetes", "ElasticNet", "diabetes", 2, alpha=uniform(0, 10), l1_ratio=uniform(0, 1),
      max_iter=stepped(10, 200, 10), fit_intercept=pick(True, False))  # fmt: skip
@task("huber-friedman", "HuberRegressor", "friedman3", 2, epsilon=uniform(0.5, 10), alpha=uniform(0, 100),
      max_iter=stepped(5, 100, 5))  # fmt: skip
def _linear(kind: str, data: str, degree: int, max_iter: float, **settings: Any) -> float:
    from sklearn import linear_model
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    if kind != "HuberRegressor":
        settings["random_state"] = 0
    model = getattr(linear_model, kind)(max_iter=int(max_iter), **settings)
    features = PolynomialFeatures(degree, include_bias=False)
    return _held_out(make_pipeline(features, StandardScaler(), model), data, of="squares")


@task("gaussian-process", "friedman1", 60, length=uniform(0.001, 100), noise=uniform(1e-6, 100),
      height=uniform(0.001, 1000),
      nu=pick(0.5, 1.5, 2.5))  # fmt: skip
@task("gaussian-process-log", "friedman2", 60, length=log(1e-4, 1e5), noise=log(1e-8, 1e4), height=log(1e-3, 1e8),
      nu=pick(0.5, 1.5, 2.5))  # fmt: skip
def _evidence(data: str, train: int, length: float, noise: float, height: float, nu: float) -> float:
    """Return minus the log evidence of a Gaussian process."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(height) * Matern(length, nu=nu) + WhiteKernel(noise)
    inputs, outputs = _data(data)
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(inputs[:train], outputs[:train])
    return -model.log_marginal_likelihood_value_


@task(
    "dbscan-blobs",
    "blobs",
    eps=uniform(0.01, 20),
    min_samples=stepped(1, 100),
    metric=pick("euclidean", "manhattan"),
)
def _density(data: str, min_samples: float, **settings: Any) -> float:
    """Return how far clusters are from the classes."""
    from sklearn.cluster import DBSCAN
    from sklearn.metrics import adjusted_rand_score

    inputs, labels = (values[:300] for values in _data(data))
    found = DBSCAN(min_samples=int(min_samples), **settings).fit_predict(inputs)
    return 1 - adjusted_rand_score(labels, found)


@task("mixture-digits", n_components=stepped(1, 40), covariance_type=pick("full", "tied", "diag", "spherical"),
      reg_covar=log(1e-10, 10), dimensions=integers(1, 30), tol=uniform(1e-5, 1), max_iter=integers(1,
      30))  # fmt: skip
def _mixture(n_components: float, dimensions: int, **settings: Any) -> float:
    """Return how far the components are from the classes."""
    from sklearn.decomposition import PCA
    from sklearn.metrics import adjusted_rand_score
    from sklearn.mixture import GaussianMixture

    inputs, labels = (values[:250] for values in _data("digits"))
    points = PCA(dimensions, random_state=0).fit_transform(inputs)
    model = GaussianMixture(int(n_components), init_params="random_from_data", random_state=0, **settings)
    return 1 - adjusted_rand_score(labels, model.fit_predict(points))


@task("outliers-cancer", "breast_cancer", n_neighbors=stepped(1, 300), leaf_size=integers(5, 100), scale=_SCALERS,
      metric=pick("euclidean", "manhattan", "chebyshev", "cosine"), contamination=uniform(0.001, 0.5))  # fmt: skip
def _outliers(data: str, n_neighbors: float, scale: str, **settings: Any) -> float:
    """Return the error of calling malign samples outliers, among a few of them."""
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.pipeline import make_pipeline

    inputs, labels = _data(data)
    rows = np.concatenate([np.flatnonzero(labels == 1)[:150], np.flatnonzero(labels == 0)[:25]])
    scaled = make_pipeline(_scaler(scale)).fit_transform(inputs[rows])
    found = LocalOutlierFactor(int(n_neighbors), **settings).fit_predict(scaled) == -1
    hits = (found & (labels[rows] == 0)).sum()
    return float(1 - 2 * hits / max(found.sum() + 25, 1))


@task("spreading-digits", "digits", kernel=pick("rbf", "knn"), gamma=uniform(1e-4, 100), n_neighbors=integers(1, 80),
      alpha=uniform(0.001, 0.999), max_iter=integers(1, 60))  # fmt: skip
def _spreading(data: str, **settings: Any) -> float:
    from sklearn.semi_supervised import LabelSpreading

    inputs, labels = (values[:200] for values in _data(data))
    known = np.where(np.arange(200) < 40, labels, -1)
    found = LabelSpreading(**settings).fit(inputs / 16, known).transduction_
    return float((found[40:] != labels[40:]).mean())


@cache
def _ensemble(count: int) -> Arrays:
    """Return the probabilities of the right class under models of very different quality, (n, models, classes)."""
    from sklearn.tree import DecisionTreeClassifier

    inputs, labels = _data("classification")
    rng, found = np.random.default_rng(2), []
    for number in range(count):
        columns = rng.choice(inputs.shape[1], 6, replace=False)
        model = DecisionTreeClassifier(max_depth=1 + number % 5, min_samples_leaf=4, random_state=number)
        found.append(
            model.fit(inputs[:200][:, columns], labels[:200]).predict_proba(inputs[200:][:, columns])
        )
    return np.stack(found, axis=1), labels[200:]


@task("ensemble-small", 5, **{f"w{i}": uniform(0, 1) for i in range(5)}, power=uniform(0.01, 10))
@task("ensemble-large", 14, **{f"w{i}": uniform(0, 10) for i in range(14)})
def _weights(count: int, power: float = 1.0, **weights: float) -> float:
    """Return the loss of a weighted mean of models."""
    odds, labels = _ensemble(count)
    mixed = np.average(odds, axis=1, weights=list(weights.values())) ** power + 1e-9
    mixed /= mixed.sum(axis=1, keepdims=True)
    return float(-np.log(mixed[np.arange(len(mixed)), labels]).mean())


@cache
def _texts() -> tuple[list[str], np.ndarray]:
    """Return made documents of four topics, whose words have stems, endings and typing errors."""
    rng = np.random.default_rng(3)
    letters = list("abdegiklmnoprstu")
    stems = ["".join(rng.choice(letters, rng.integers(3, 6))) for _ in range(160)]
    endings = ["", "s", "ed", "ing", "er"]
    topics = rng.dirichlet(np.full(len(stems), 0.12), size=4) * 0.45 + 0.55 * rng.dirichlet(
        np.full(len(stems), 0.4)
    )
    labels = rng.integers(4, size=300)
    texts = []
    for label in labels:
        words = [
            stems[i] + endings[rng.integers(5)]
            for i in rng.choice(len(stems), rng.integers(6, 16), p=topics[label])
        ]
        texts.append(" ".join(word[1:] if rng.random() < 0.1 else word for word in words))
    return texts, labels


@task("text-bayes", "bayes", report=samples(100), analyzer=pick("word", "char", "char_wb"), shortest=integers(1, 6),
      longest=integers(1, 6), min_df=integers(1, 30), max_df=uniform(0.01, 1), binary=pick(True, False),
      alpha=uniform(0, 10))  # fmt: skip
@task("text-linear", "linear", analyzer=pick("word", "char", "char_wb"), shortest=integers(1, 5),
      longest=integers(1, 5),
      min_df=uniform(0, 0.2), sublinear_tf=pick(True, False), norm=pick("l1", "l2", None), alpha=uniform(1e-6,
      1))  # fmt: skip
@task("text-neighbours", "neighbours", analyzer=pick("word", "char_wb"), shortest=integers(1, 4),
      longest=integers(1, 5),
      max_features=stepped(5, 3000, 5), use_idf=pick(True, False), alpha=stepped(1, 150))  # fmt: skip
def _text(
    kind: str, shortest: int, longest: int, alpha: float, max_features: float | None = None, **settings: Any
) -> float:
    from sklearn import feature_extraction, linear_model, naive_bayes, neighbors
    from sklearn.pipeline import make_pipeline

    words = feature_extraction.text
    made = words.CountVectorizer if kind == "bayes" else words.TfidfVectorizer
    size = None if max_features is None else int(max_features)
    vectors = made(ngram_range=(shortest, longest), max_features=size, **settings)
    model: Any = naive_bayes.MultinomialNB(alpha=alpha)
    if kind == "linear":
        model = linear_model.SGDClassifier(alpha=alpha, max_iter=10, tol=None, random_state=0)
    if kind == "neighbours":
        model = neighbors.KNeighborsClassifier(int(alpha))
    texts, labels = _texts()
    found = make_pipeline(vectors, model).fit(texts[:160], labels[:160]).predict(texts[160:])
    return float((found != labels[160:]).mean())
