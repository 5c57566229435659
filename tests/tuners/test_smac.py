"""SMAC and DNGO: they conform, and take their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from pitchpipe.numerics.random_forest import Forest
from pitchpipe.testing import DIFFERENT, SPACES
from pitchpipe.tuners import DNGOTuner, SMACTuner, Tuner
from pitchpipe.tuners.models.regions import Everywhere
from pitchpipe.tuners.models.surrogate_tuner import Training

from .searches import LINE, started, suite

QUICK = Everywhere(random=40, around=12)


def quick_smac(seed: int, optimize_mode: str) -> Tuner:
    tuner = SMACTuner(optimize_mode, trees=4, startup=4, seed=seed)
    tuner._everywhere, tuner._rounds = QUICK, 1
    return tuner


def quick_dngo(seed: int, optimize_mode: str) -> Tuner:
    tuner = DNGOTuner(optimize_mode, startup=4, num_epochs_per_training=10, seed=seed)
    tuner._everywhere, tuner._rounds = QUICK, 1
    return tuner


TestSMAC = suite(quick_smac, trials=9, many_results=25)
# SMAC takes the other spaces.
TestDNGO = suite(quick_dngo, trials=9, many_results=25, spaces={name: SPACES[name] for name in DIFFERENT})


def test_running_trials_count_with_what_is_expected_of_them() -> None:
    learned: list[Training] = []

    class Noted(SMACTuner):
        def _fit(self, training: Training) -> Forest:
            learned.append(training)
            return super()._fit(training)

    tuner = started(Noted("minimize", startup=3, seed=0), LINE)
    tuner.import_data([{"parameter": {"x": i / 20}, "value": abs(i / 20 - 0.6)} for i in range(21)])
    tuner.generate_multiple_parameters([0, 1])
    without, believing = learned[-2:]
    assert (len(without.targets), len(believing.targets)) == (21, 22)
    # The point is a good one, and so is what is believed.
    assert believing.targets[-1] < np.median(without.targets)


def test_few_results_of_a_branch_get_it_a_second_look() -> None:
    space: dict[str, Any] = {
        "m": {
            "_type": "choice",
            "_value": [{"_name": str(k), "x": {"_type": "uniform", "_value": [0, 1]}} for k in range(3)],
        }
    }
    tuner = started(SMACTuner("minimize", startup=3, seed=0), space)
    for k, value in enumerate((0.0, 5.0, 6.0)):
        data = [
            {"parameter": {"m": {"_name": str(k), "x": i / 9}}, "value": value + i / 90} for i in range(10)
        ]
        tuner.import_data(data)
    seen = [tuner.generate_parameters(i)["m"]["_name"] for i in range(60)]
    assert seen.count("0") > 40
    assert {"1", "2"} <= set(seen)


def test_the_network_is_trained_as_often_as_configured() -> None:
    trained = []
    tuner = DNGOTuner("minimize", startup=2, trials_per_update=3, num_epochs_per_training=1, seed=0)
    started(tuner, LINE)
    tuner.import_data([{"parameter": {"x": i / 40}, "value": i} for i in range(40)])
    for i in range(10):
        point = tuner.generate_parameters(i)
        trained.append(tuner._trained_with)
        tuner.receive_trial_result(i, point, 1.0)
    assert trained == [40, 40, 40, 43, 43, 43, 46, 46, 46, 49]
