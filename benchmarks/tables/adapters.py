"""The optimisers of the tables, with one interface: suggest some parameters, observe their values.

A name without a prefix is a tuner of ours. All minimise; with several objectives, each value is a list.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# The adapters of single objectives are those of the benchmark of search quality.
sys.path.append(str(Path(__file__).parents[1] / "search_quality"))
from optimisers import our_tuner, suggested

__all__ = ["ENVIRONMENTS", "Adapter", "environment_of", "make"]

Parameters = dict[str, Any]
Values = list[float]
# Prefixes of peers, and the environment of each.
ENVIRONMENTS = {"optuna-": "peers", "skopt": "peers", "hebo": "hebo"}


def environment_of(name: str) -> str | None:
    """Return the environment of an optimiser; None is ours."""
    return next((found for prefix, found in ENVIRONMENTS.items() if name.startswith(prefix)), None)


class Adapter(ABC):
    """One optimiser on one search space."""

    @abstractmethod
    def suggest(self, count: int) -> list[Parameters]:
        """Return parameters to try at the same time; fewer if the search space has no more."""

    @abstractmethod
    def observe(self, values: Sequence[Values]) -> None:
        """Learn the values of all that was suggested last; NaN is a failed trial."""


def make(name: str, space: Parameters, objectives: Sequence[str], seed: int) -> Adapter:
    """Make an optimiser by name, for example `Auto`, `TPE`, `optuna-tpe`, `optuna-nsga2`, `skopt` or `hebo`."""
    if name.startswith("optuna-"):
        return _Optuna(name.removeprefix("optuna-"), space, objectives, seed)
    if name not in ("skopt", "hebo"):
        return _Ours(name, space, objectives, seed)
    if len(objectives) > 1:
        raise ValueError(f"{name} has one objective")
    return _Skopt(space, seed) if name == "skopt" else _Hebo(space, seed)


class _Ours(Adapter):
    def __init__(self, name: str, space: Parameters, objectives: Sequence[str], seed: int) -> None:
        # The others load their libraries here, before their time is taken.
        import scipy.linalg
        import scipy.optimize
        import scipy.special  # noqa: F401

        self._tuner, self._objectives = our_tuner(name, seed), objectives
        if len(objectives) > 1 and hasattr(self._tuner, "update_objectives"):
            self._tuner.update_objectives([{"name": one, "direction": "minimize"} for one in objectives])
        self._tuner.update_search_space(space)
        self._keys = 0
        self._asked: dict[int, Parameters] = {}

    def suggest(self, count: int) -> list[Parameters]:
        from pitchpipe.tuners import NoMoreTrialError

        self._asked = {}
        for key in range(self._keys, self._keys + count):
            try:
                self._asked[key] = self._tuner.generate_parameters(key)
            except NoMoreTrialError:
                break
        self._keys += count
        return list(self._asked.values())

    def observe(self, values: Sequence[Values]) -> None:
        for (key, parameters), found in zip(self._asked.items(), values, strict=True):
            failed = any(map(math.isnan, found))
            if not failed:
                report: Any = dict(zip(self._objectives, found, strict=True)) if len(found) > 1 else found[0]
                self._tuner.receive_trial_result(key, parameters, report)
            self._tuner.trial_end(key, not failed)


class _Optuna(Adapter):
    def __init__(self, kind: str, space: Parameters, objectives: Sequence[str], seed: int) -> None:
        import warnings

        import optuna

        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers: dict[str, Callable[[], Any]] = {
            "tpe": lambda: optuna.samplers.TPESampler(
                seed=seed, multivariate=True, group=True, constant_liar=True
            ),
            "cmaes": lambda: optuna.samplers.CmaEsSampler(seed=seed),
            "nsga2": lambda: optuna.samplers.NSGAIISampler(seed=seed, population_size=20),
        }
        self._space = space
        self._study = optuna.create_study(sampler=samplers[kind](), directions=["minimize"] * len(objectives))
        self._trials: list[Any] = []

    def suggest(self, count: int) -> list[Parameters]:
        self._trials = [self._study.ask() for _ in range(count)]
        return [suggested(trial, self._space) for trial in self._trials]

    def observe(self, values: Sequence[Values]) -> None:
        for trial, found in zip(self._trials, values, strict=True):
            self._study.tell(trial, found)  # NaN makes it a failed trial


class _Scalar(Adapter):
    """A library that knows neither failures nor several objectives: a failed trial is as bad as the worst so far."""

    def __init__(self) -> None:
        self._known: list[float] = []

    def observe(self, values: Sequence[Values]) -> None:
        self._known += [value for [value] in values if not math.isnan(value)]
        worst = max(self._known, default=0.0)
        self._learn([worst if math.isnan(value) else value for [value] in values])

    @abstractmethod
    def _learn(self, values: list[float]) -> None: ...


class _Skopt(_Scalar):
    def __init__(self, space: Parameters, seed: int) -> None:
        super().__init__()
        from skopt import Optimizer

        self._names = list(space)
        dimensions = [self._dimension(spec) for spec in space.values()]
        self._optimizer = Optimizer(dimensions, base_estimator="GP", random_state=seed, n_jobs=1)
        self._points: list[list[Any]] = []

    @staticmethod
    def _dimension(spec: Parameters) -> Any:
        from skopt.space import Categorical, Integer, Real

        kind, values = spec["_type"], spec["_value"]
        if kind == "choice":
            return Categorical(values)
        if kind == "randint":
            return Integer(values[0], values[1] - 1)
        if kind == "qloguniform":
            return Integer(values[0], values[1], "log-uniform")
        return Real(values[0], values[1], "log-uniform" if kind == "loguniform" else "uniform")

    def suggest(self, count: int) -> list[Parameters]:
        self._points = self._optimizer.ask(n_points=count)
        return [dict(zip(self._names, map(_plain, point), strict=True)) for point in self._points]

    def _learn(self, values: list[float]) -> None:
        self._optimizer.tell(self._points, values)


class _Hebo(_Scalar):
    def __init__(self, space: Parameters, seed: int) -> None:
        super().__init__()
        import warnings

        import numpy
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        numpy.random.seed(seed)
        torch.manual_seed(seed)
        self._space = space
        described = [self._described(name, spec) for name, spec in space.items()]
        self._optimizer: Any = HEBO(DesignSpace().parse(described), scramble_seed=seed)
        self._rows: Any = None

    @staticmethod
    def _described(name: str, spec: Parameters) -> Parameters:
        kind, values = spec["_type"], spec["_value"]
        if kind == "choice":
            return {"name": name, "type": "cat", "categories": list(range(len(values)))}
        types = {"randint": "int", "uniform": "num", "loguniform": "pow", "qloguniform": "pow_int"}
        return {"name": name, "type": types[kind], "lb": values[0], "ub": values[1] - (kind == "randint")}

    def suggest(self, count: int) -> list[Parameters]:
        self._rows = self._optimizer.suggest(n_suggestions=count)
        return [
            {name: self._value(spec, row[name]) for name, spec in self._space.items()}
            for _, row in self._rows.iterrows()
        ]

    @staticmethod
    def _value(spec: Parameters, value: Any) -> Any:
        return spec["_value"][int(value)] if spec["_type"] == "choice" else _plain(value)

    def _learn(self, values: list[float]) -> None:
        import numpy

        self._optimizer.observe(self._rows, numpy.array(values).reshape(-1, 1))


def _plain(value: Any) -> Any:
    """Return a value of Python itself for one of numpy."""
    return value.item() if hasattr(value, "item") else value
