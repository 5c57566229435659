"""The optimisers: Pitchpipe's tuners, and its peers where they are installed, with one interface.

An optimiser proposes parameters for a key and learns the value of that key, in any order; NaN is a failed trial.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypervolume import excesses

__all__ = ["PEERS", "Optimiser", "make", "our_tuner", "suggested"]

Parameters = dict[str, Any]
Objectives = Sequence[dict[str, Any]]
PEERS = ("optuna-default", "optuna-tpe", "optuna-gp", "optuna-cmaes", "nni-tpe")


class Optimiser(ABC):
    """Proposes parameters and learns values to be minimised; with several objectives, dicts of them."""

    @abstractmethod
    def ask(self, key: int) -> Parameters:
        """Return parameters for the trial `key`; others may be running."""

    @abstractmethod
    def tell(self, key: int, value: Any) -> None:
        """Learn the value of the trial `key`."""


def make(name: str, space: Parameters, seed: int, objectives: Objectives = ()) -> Optimiser:
    """Make an optimiser by name: `TPE` is a tuner of ours, `optuna-tpe` a peer.

    `TPE:{"name": value}` has other arguments, `Auto@{"name": value}` has other ingredients (`tuners/auto/model.py`).
    """
    package, _, kind = name.partition("-")
    if package == "optuna":
        return _Optuna(kind, space, seed, objectives)
    if package == "nni":
        return _Tuner(_nnis(kind, seed), space)
    return _Tuner(our_tuner(name, seed), space, objectives)


class _Tuner(Optimiser):
    """A tuner with NNI's interface: one of ours or of NNI's."""

    def __init__(self, tuner: Any, space: Parameters, objectives: Objectives = ()) -> None:
        self._tuner = tuner
        if objectives and hasattr(tuner, "update_objectives"):
            tuner.update_objectives(list(objectives))
        self._tuner.update_search_space(space)
        self._asked: dict[int, Parameters] = {}

    def ask(self, key: int) -> Parameters:
        self._asked[key] = parameters = self._tuner.generate_parameters(key)
        return parameters

    def tell(self, key: int, value: Any) -> None:
        failed = _has_failed(value)
        if not failed:
            self._tuner.receive_trial_result(key, self._asked[key], value)
        self._tuner.trial_end(key, not failed)


def _has_failed(value: Any) -> bool:
    return not isinstance(value, dict) and math.isnan(value)


def our_tuner(name: str, seed: int) -> Any:
    """Make a tuner of ours that minimises; see `make` for its name."""
    import inspect
    import json

    from pitchpipe import tuners

    name, _, settings = name.partition("@")
    name, _, arguments = name.partition(":")
    given = json.loads(arguments) if arguments else {}
    if "optimize_mode" in inspect.signature(tuners.find(name)).parameters:
        given = {"optimize_mode": "minimize", **given}  # NNI's tuners maximise by default
    tuner: Any = tuners.create(name, seed=seed, **given)
    if settings:
        tuner.settings = replace(tuner.settings, **json.loads(settings))
    return tuner


def _nnis(kind: str, seed: int) -> Any:
    from nni.algorithms.hpo.tpe_tuner import TpeTuner

    if kind != "tpe":
        raise ValueError(f"of NNI's tuners only tpe runs with current libraries, not {kind}")
    return TpeTuner("minimize", seed)


class _Optuna(Optimiser):
    def __init__(self, kind: str, space: Parameters, seed: int, objectives: Objectives) -> None:
        import warnings

        import optuna

        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        limited: dict[str, Any] = {}
        if any("constraint" in one for one in objectives):
            limited = {"constraints_func": lambda trial: trial.user_attrs["excesses"]}
        samplers: dict[str, Callable[[], Any]] = {
            "default": lambda: optuna.samplers.TPESampler(seed=seed, **limited),
            "tpe": lambda: optuna.samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True, **limited
            ),
            "nsga2": lambda: optuna.samplers.NSGAIISampler(seed=seed, **limited),
            "nsga3": lambda: optuna.samplers.NSGAIIISampler(seed=seed, **limited),
            "gp": lambda: optuna.samplers.GPSampler(seed=seed),
            "cmaes": lambda: optuna.samplers.CmaEsSampler(seed=seed),
        }
        self._space = space
        self._objectives = objectives
        self._goals = [one["name"] for one in objectives if "reference" in one] or ["default"]
        self._study = optuna.create_study(
            sampler=samplers[kind](), directions=["minimize"] * len(self._goals)
        )
        self._trials: dict[int, Any] = {}
        self._failed = optuna.trial.TrialState.FAIL

    def ask(self, key: int) -> Parameters:
        self._trials[key] = trial = self._study.ask()
        return suggested(trial, self._space)

    def tell(self, key: int, value: Any) -> None:
        trial = self._trials.pop(key)
        if _has_failed(value):
            self._study.tell(trial, state=self._failed)
        elif self._objectives:
            trial.set_user_attr("excesses", excesses(self._objectives, value))
            self._study.tell(trial, [value[name] for name in self._goals])
        else:
            self._study.tell(trial, value)


def suggested(trial: Any, space: Parameters) -> Parameters:
    """Draw the parameters of an Optuna trial, in NNI's form."""
    return {name: _suggest(trial, name, spec) for name, spec in space.items()}


def _suggest(trial: Any, path: str, spec: Parameters) -> Any:
    """Draw a value with Optuna's functions; it lacks normal types, which become uniform over three deviations."""
    kind, values = spec["_type"], spec["_value"]
    if kind == "choice":
        return _suggest_option(trial, path, values)
    if kind == "randint":
        return trial.suggest_int(path, values[0], values[1] - 1)
    if kind in ("uniform", "loguniform"):
        return trial.suggest_float(path, values[0], values[1], log=kind == "loguniform")
    if kind == "quniform":
        return trial.suggest_float(path, values[0], values[1], step=values[2])
    if kind == "qloguniform":
        return _rounded(trial.suggest_float(path, values[0], values[1], log=True), values[2])
    mu, sigma = values[:2]
    drawn = trial.suggest_float(path, mu - 3 * sigma, mu + 3 * sigma)
    drawn = math.exp(drawn) if "log" in kind else drawn
    return _rounded(drawn, values[2]) if kind.startswith("q") else drawn


def _suggest_option(trial: Any, path: str, options: list[Any]) -> Any:
    if not isinstance(options[0], dict):
        return trial.suggest_categorical(path, options)
    name = trial.suggest_categorical(path, [option["_name"] for option in options])
    chosen = next(option for option in options if option["_name"] == name)
    inner = {key: spec for key, spec in chosen.items() if key != "_name"}
    return {"_name": name} | {
        key: _suggest(trial, f"{path}.{name}.{key}", spec) for key, spec in inner.items()
    }


def _rounded(value: float, q: float) -> float:
    return round(value / q) * q
