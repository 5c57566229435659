"""Searches that report after every epoch, by workers on a simulated clock, with a rule that stops trials early.

Epochs are counted: a full trial trains R of them. The value of a search after some epochs is the lowest that any trial
has reported by then; with several objectives it is minus the hypervolume of the trials that trained in full.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypervolume import Front
from tasks import Curves, Parameters

__all__ = ["Method", "make_method", "run_epochs"]

WORKERS = 4


class Method(ABC):
    """Proposes parameters, and decides after every epoch whether a trial continues."""

    @abstractmethod
    def start(self, key: int) -> Parameters:
        """Return the parameters of the trial `key`."""

    @abstractmethod
    def report(self, key: int, epoch: int, value: Any) -> bool:
        """Return whether the trial continues after its result number `epoch` (from 1)."""

    @abstractmethod
    def end(self, key: int, value: Any) -> None:
        """End the trial with its final value, or with None if it was stopped."""


def make_method(name: str, curves: Curves, seed: int) -> Method:
    """Make a method: `Auto+ASHA` is our tuner and assessor, `Auto` a tuner alone, `optuna-tpe+asha` Optuna's."""
    searching, _, stopping = name.partition("+")
    if searching.startswith("optuna-"):
        return _Optuna(stopping, curves, seed)
    return _Ours(searching, stopping, curves, seed)


class _Ours(Method):
    def __init__(self, tuner: str, assessor: str, curves: Curves, seed: int) -> None:
        from optimisers import our_tuner

        from pitchpipe import assessors

        arguments = {"max_t": curves.epochs, "min_competitors": 3} if assessor == "ASHA" else {}
        if assessor == "Hyperband":
            arguments = {"R": curves.epochs}
        self._tuner = our_tuner(tuner, seed)
        self._assessor: Any = (
            assessors.create(assessor, optimize_mode="minimize", **arguments) if assessor else None
        )
        for plugin in (self._tuner, self._assessor):
            if curves.objectives and hasattr(plugin, "update_objectives"):
                plugin.update_objectives(list(curves.objectives))
        self._tuner.update_search_space(curves.space)
        self._asked: dict[int, Parameters] = {}
        self._history: dict[int, list[Any]] = {}

    def start(self, key: int) -> Parameters:
        self._asked[key], self._history[key] = self._tuner.generate_parameters(key), []
        return self._asked[key]

    def report(self, key: int, epoch: int, value: Any) -> bool:
        self._history[key].append(value)
        if self._assessor is None:
            return True
        if self._tuner.wants_periodical:
            self._tuner.receive_intermediate_result(
                key, self._asked[key], value, trial_job_id=str(key), sequence=epoch - 1
            )
        return bool(self._assessor.assess_trial(str(key), list(self._history[key])).value is True)

    def end(self, key: int, value: Any) -> None:
        if value is not None:
            self._tuner.receive_trial_result(key, self._asked[key], value, trial_job_id=str(key))
        elif hasattr(self._tuner, "trial_stopped"):
            self._tuner.trial_stopped(key)
        self._tuner.trial_end(key, value is not None)
        if self._assessor is not None:
            if value is not None and hasattr(self._assessor, "receive_trial_result"):
                self._assessor.receive_trial_result(str(key), value)
            self._assessor.trial_end(str(key), value is not None)


class _Optuna(Method):
    def __init__(self, pruner: str, curves: Curves, seed: int) -> None:
        import warnings

        import optuna

        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        pruners: dict[str, Any] = {
            "": optuna.pruners.NopPruner(),
            "asha": optuna.pruners.SuccessiveHalvingPruner(reduction_factor=3),
            "hyperband": optuna.pruners.HyperbandPruner(max_resource=curves.epochs),
            "median": optuna.pruners.MedianPruner(),
        }
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        self._study = optuna.create_study(sampler=sampler, pruner=pruners[pruner])
        self._space = curves.space
        self._pruned = optuna.trial.TrialState.PRUNED
        self._trials: dict[int, Any] = {}

    def start(self, key: int) -> Parameters:
        from optimisers import suggested

        self._trials[key] = self._study.ask()
        return suggested(self._trials[key], self._space)

    def report(self, key: int, epoch: int, value: float) -> bool:
        self._trials[key].report(value, epoch)
        return not self._trials[key].should_prune()

    def end(self, key: int, value: float | None) -> None:
        trial = self._trials.pop(key)
        if value is None:
            self._study.tell(trial, state=self._pruned)
        else:
            self._study.tell(trial, value)


@dataclass(order=True)
class _Running:
    """A trial under way; the next of its epochs ends at `until`."""

    until: float
    key: int
    epoch: int = field(compare=False)
    pace: float = field(compare=False)
    curve: Iterator[Any] = field(compare=False)


def run_epochs(curves: Curves, method: Method, budget: int, seed: int) -> list[float]:
    """Return the value of the search after each of `budget` epochs, over all workers."""
    rng = np.random.default_rng([seed, 78])
    running: list[_Running] = []
    lowest, best, key, now = list[float](), math.inf, 0, 0.0
    front = Front(curves.objectives)
    while len(lowest) < budget:
        while len(running) < WORKERS:
            pace = float(rng.lognormal(0, 0.3))
            curve = curves.curve(method.start(key))
            heapq.heappush(running, _Running(now + pace, key, 1, pace, curve))
            key += 1
        trial = heapq.heappop(running)
        now, value = trial.until, next(trial.curve)
        is_last = trial.epoch == curves.epochs
        if is_last and curves.objectives:
            front.add(value)
        best = -front.volume if curves.objectives else min(best, value)
        lowest.append(best)
        continues = method.report(trial.key, trial.epoch, value)
        if is_last or not continues:
            method.end(trial.key, value if is_last else None)
        else:
            trial.epoch, trial.until = trial.epoch + 1, now + trial.pace
            heapq.heappush(running, trial)
    return lowest
