"""What the tests of tuners share: a tuner that has its space, a search, and conformance suites in one line each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pitchpipe.testing import TunerConformance
from pitchpipe.tuners import Tuner

T = TypeVar("T", bound=Tuner)

LINE: dict[str, Any] = {"x": {"_type": "uniform", "_value": [0, 1]}}
PLANE: dict[str, Any] = {
    "x": {"_type": "uniform", "_value": [-5, 5]},
    "y": {"_type": "loguniform", "_value": [1e-3, 1e3]},
}


def plane(point: dict[str, Any]) -> float:
    return (point["x"] - 2) ** 2 + math.log10(point["y"]) ** 2


def started(
    tuner: T,
    space: Mapping[str, Any],
    *,
    constraints: Sequence[str] = (),
    objectives: Sequence[Mapping[str, Any]] = (),
    priors: Mapping[str, Any] | None = None,
) -> T:
    """Give a tuner what a manager tells it before the first suggestion, and return it."""
    either: Any = tuner
    if constraints:
        either.update_constraints(constraints)
    if objectives:
        either.update_objectives(objectives)
    if priors is not None:
        either.update_priors(priors)
    either.update_search_space(space)
    return tuner


def search(tuner: Tuner, objective: Callable[[Any], Any], count: int, first: int = 0) -> list[Any]:
    """Run trials one after the other, and return their results."""
    results = []
    for i in range(first, first + count):
        point = tuner.generate_parameters(i)
        results.append(objective(point))
        tuner.receive_trial_result(i, point, results[-1])
        tuner.trial_end(i, True)
    return results


def suite(
    make: Callable[[int, str], Tuner],
    make_directed: Callable[[int, str], Tuner] | None = None,
    **attributes: Any,
) -> type[TunerConformance]:
    """Return the suite of the tuners that a function of seed and direction makes.

    `make_directed` makes the tuners of the test of the direction if they are not the same.
    """
    methods = {
        "make": lambda self, seed: make(seed, "minimize"),
        "make_directed": lambda self, seed, optimize_mode: (make_directed or make)(seed, optimize_mode),
    }
    return type("Suite", (TunerConformance,), {**methods, **attributes})
