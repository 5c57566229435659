"""What is minimised: tasks by name, each a search space with an objective whose best value is known or was found.

A task is made again for every run: `objective(parameters, rng)` is what an optimiser sees (with noise, where there is
noise), `truth(parameters)` is what it is judged by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

__all__ = [
    "Curves",
    "Task",
    "curve_tasks",
    "make",
    "names",
    "of_kind",
    "space_of",
]

Parameters = dict[str, Any]


def space_of(**parameters: tuple[str, list[Any]]) -> Parameters:
    """Return a search space in NNI's form."""
    return {name: {"_type": kind, "_value": values} for name, (kind, values) in parameters.items()}


@dataclass(frozen=True)
class Task:
    """One problem; `best` is its minimum, None where it is unknown.

    With several `objectives`, values are dicts, and the minimum is minus the hypervolume. Noise is that of `default`.
    """

    name: str
    about: str
    space: dict[str, Any]
    truth: Callable[[Parameters], Any]
    best: float | None = None
    noise: float = 0.0
    objectives: tuple[dict[str, Any], ...] = ()

    def objective(self, parameters: Parameters, rng: np.random.Generator) -> Any:
        """Return what is reported; NaN for a trial that fails."""
        value = self.truth(parameters)
        if not self.noise:
            return value
        error = self.noise * float(rng.normal())
        return {**value, "default": value["default"] + error} if isinstance(value, dict) else value + error


@dataclass(frozen=True)
class Curves:
    """A problem whose trials report after every epoch, `epochs` at most; `curve` trains one epoch at a time.

    With several `objectives`, each with a reference, the reports are dicts.
    """

    name: str
    about: str
    space: dict[str, Any]
    epochs: int
    curve: Callable[[Parameters], Iterator[Any]]
    objectives: tuple[dict[str, Any], ...] = ()


def names() -> list[str]:
    """Return the names of the tasks in the order of the tables."""
    return list(_makers())


def make(name: str) -> Task:
    """Make a task by its name; raise `KeyError` for an unknown one."""
    return _makers()[name]()


def curve_tasks() -> dict[str, Callable[[], Curves]]:
    """Return the tasks with learning curves, by name."""
    import learning_curves

    return {
        "c1": learning_curves.power_laws,
        "c2": learning_curves.crossing,
        "c3": learning_curves.digits,
        "f1": learning_curves.error_and_cost,
        "f2": learning_curves.digits_and_size,
    }


def of_kind(kind: str) -> list[str]:
    """Return the names of the tasks of a kind: they begin with one of its letters."""
    return [name for name in (*names(), *curve_tasks()) if name[0] in kind]


def _makers() -> dict[str, Callable[[], Task]]:
    import failing
    import fronts
    import ordinary
    import plateaus
    import synthetic
    import training

    return {
        "s1": synthetic.rastrigin,
        "s2": synthetic.rosenbrock,
        "s3": synthetic.hartmann,
        "s4": synthetic.few_matter,
        "s5": synthetic.mixed,
        "s6": synthetic.tree,
        "s7": synthetic.every_type,
        "s8": synthetic.architecture,
        "s9": synthetic.network,
        "t1": training.support_vectors,
        "t2": training.kernel_ridge,
        "t3": training.linear_classifier,
        "t4": training.boosting,
        "p1": plateaus.kernel_classifier,
        "p2": plateaus.linear_classifier,
        "p3": plateaus.neighbours,
        "p4": plateaus.features_classifier,
        "p5": plateaus.steep,
        "p6": plateaus.steep_mixed,
        "p7": plateaus.flat,
        "p8": plateaus.flat_tree,
        "p9": partial(plateaus.kernel_classifier, folds=True),
        "p10": partial(plateaus.linear_classifier, folds=True),
        "p11": partial(plateaus.neighbours, folds=True),
        "p12": partial(plateaus.features_classifier, folds=True),
        "d1": failing.out_of_memory,
        "d2": failing.diverging_and_large,
        "m1": fronts.bowls,
        "m2": fronts.gaps,
        "m3": fronts.families,
        "m4": fronts.network,
        "m5": fronts.three_goals,
        "m6": fronts.four_goals,
        "m7": fronts.inference,
        **ordinary.ordinary_tasks(),
    }
