"""Ordinary tasks: what people tune, in spaces as people write them, with values as people report them.

Ranges are too wide or uniform where a logarithm would serve, optima lie at their ends, integers are real numbers,
parameters do nothing, options raise; results are accuracies on a few samples, differ from run to run, are times, or
span decades. A trial takes milliseconds. `trained.py` has models, `everyday.py` the rest.

Half of them, drawn at random before any search, are open (`o-...`): for development. The others are closed
(`x-...`): they confirm what was chosen on the open ones, and no result of theirs may guide a change.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from tasks import Parameters, Task, space_of

__all__ = [
    "Ordinary",
    "flaky",
    "integers",
    "log",
    "noisy",
    "option",
    "ordinary_tasks",
    "pick",
    "samples",
    "stepped",
    "task",
    "times",
    "uniform",
]

Report = Callable[[float, np.random.Generator], float]
Spec = tuple[str, list[Any]]
_made: dict[str, Callable[[str], Task]] = {}


@dataclass(frozen=True)
class Ordinary(Task):
    """A task with its own way from the true value to the one that is reported."""

    report: Report = lambda value, _: value

    def objective(self, parameters: Parameters, rng: np.random.Generator) -> float:
        """Return what is reported; NaN for a trial that fails."""
        value = self.truth(parameters)
        return value if math.isnan(value) else self.report(value, rng)


def uniform(low: float, high: float) -> Spec:
    return "uniform", [low, high]


def log(low: float, high: float) -> Spec:
    return "loguniform", [low, high]


def integers(low: int, high: int) -> Spec:
    """Return integers from `low` to below `high`."""
    return "randint", [low, high]


def stepped(low: float, high: float, q: float = 1) -> Spec:
    """Return multiples of q, which arrive as real numbers."""
    return "quniform", [low, high, q]


def pick(*options: Any) -> Spec:
    return "choice", list(options)


def option(name: str, **inner: Spec) -> dict[str, Any]:
    """Return an option with parameters of its own."""
    return {"_name": name, **space_of(**inner)}


def noisy(deviation: float) -> Report:
    """Add the same noise everywhere: another seed, another result."""
    return lambda value, rng: value + deviation * float(rng.normal())


def times(deviation: float) -> Report:
    """Multiply by noise, as measured seconds have it."""
    return lambda value, rng: value * math.exp(deviation * float(rng.normal()))


def samples(count: int) -> Report:
    """Report an error rate as seen on so many random samples."""
    return lambda value, rng: float(rng.binomial(count, min(max(value, 0.0), 1.0))) / count


def flaky(share: float, report: Report = lambda value, _: value) -> Report:
    """Lose a share of the trials for reasons that have nothing to do with their parameters."""
    return lambda value, rng: math.nan if rng.random() < share else report(value, rng)


def task(
    name: str, *given: Any, report: Report = Ordinary.report, **space: Spec
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Register a function of the space's parameters, after those that are `given`, as a task to minimise."""

    def register(function: Callable[..., float]) -> Callable[..., float]:
        def make(half: str) -> Task:
            truth = _guarded(partial(function, *given))
            return Ordinary(
                f"{half}-{name}", f"{len(space)} parameters", space_of(**space), truth, report=report
            )

        _made[name] = make
        return function

    return register


def _guarded(function: Callable[..., float]) -> Callable[[Parameters], float]:
    """Return a function of parameters that is NaN where it raises or is not finite; repeats are not computed."""
    known: dict[str, float] = {}

    def truth(parameters: Parameters) -> float:
        key = repr(sorted(parameters.items(), key=lambda item: item[0]))
        if key not in known:
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    value = float(function(**parameters))
            except (
                ArithmeticError,
                AttributeError,
                LookupError,
                MemoryError,
                RuntimeError,
                TypeError,
                ValueError,
            ):
                value = math.nan
            known[key] = value if math.isfinite(value) else math.nan
        return known[key]

    return truth


def ordinary_tasks() -> dict[str, Callable[[], Task]]:
    """Return the tasks by name, the open ones first."""
    for module in ("everyday", "trained"):
        import_module(module)
    names = sorted(_made)
    order = np.random.default_rng(57).permutation(len(names))
    drawn = [names[place] for place in order]
    halves = {"o": sorted(drawn[: len(drawn) // 2]), "x": sorted(drawn[len(drawn) // 2 :])}
    return {f"{half}-{name}": partial(_made[name], half) for half, found in halves.items() for name in found}
