"""Tuners that learn beat random search, on numbers and on branches, by more than chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.testing import TASKS, advantage
from pitchpipe.tuners import (
    AnnealTuner,
    CMAESTuner,
    DNGOTuner,
    EvolutionTuner,
    GPTuner,
    MetisTuner,
    NSGATuner,
    OptunaTuner,
    SMACTuner,
    Tuner,
)
from pitchpipe.tuners.models.regions import Everywhere

CHEAP: dict[str, Callable[[int], Tuner]] = {
    "Anneal": lambda seed: AnnealTuner(seed=seed),
    "CMA-ES": lambda seed: CMAESTuner(seed=seed),
    "Evolution": lambda seed: EvolutionTuner("minimize", population_size=10, seed=seed),
    "NSGA": lambda seed: NSGATuner(population_size=10, seed=seed),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", CHEAP)
def test_tuners_that_compute_little(name: str, task: str) -> None:
    assert advantage(CHEAP[name], TASKS[task], trials=100)[1] < 0


def smac(seed: int) -> Tuner:
    tuner = SMACTuner("minimize", trees=10, seed=seed)
    tuner._everywhere = Everywhere(random=60, around=40)
    return tuner


def dngo(seed: int) -> Tuner:
    return DNGOTuner("minimize", sample_size=100, num_epochs_per_training=100, seed=seed)


@pytest.mark.parametrize(
    ("make", "task", "arguments"),
    [
        (lambda seed: GPTuner("minimize", "ei", seed=seed), "branches", {"trials": 30}),
        (lambda seed: GPTuner("minimize", "ucb", seed=seed), "bowl", {"trials": 20}),
        (lambda seed: GPTuner("minimize", "poi", seed=seed), "bowl", {"trials": 20}),
        (lambda seed: GPTuner("minimize", seed=seed), "bowl", {"trials": 24, "workers": 8}),
        (lambda seed: MetisTuner("minimize", seed=seed), "bowl", {"trials": 20}),
        (smac, "bowl", {"trials": 40}),
        (smac, "branches", {"trials": 50, "seeds": 8}),
        (dngo, "bowl", {"trials": 40}),
        (
            lambda seed: OptunaTuner(sampler_args={"multivariate": True}, seed=seed),
            "bowl",
            {"trials": 30, "seeds": 6},
        ),
    ],
    ids=["GP-ei", "GP-ucb", "GP-poi", "GP-workers", "Metis", "SMAC-bowl", "SMAC-branches", "DNGO", "Optuna"],
)
def test_tuners_that_model_results(
    make: Callable[[int], Tuner], task: str, arguments: dict[str, Any]
) -> None:
    assert advantage(make, TASKS[task], **{"seeds": 5, **arguments})[1] < 0
