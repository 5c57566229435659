"""TPE: it learns, in the right direction, from every kind of result, on every kind of space."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from pitchpipe.tuners import NoMoreTrialError, RandomTuner, TPETuner, TpeTuner, Tuner

from .searches import LINE, PLANE, plane, search, started

TREE: dict[str, Any] = {
    "m": {
        "_type": "choice",
        "_value": [
            {"_name": "flat"},
            {
                "_name": "deep",
                "k": {
                    "_type": "choice",
                    "_value": [{"_name": "p", "z": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "q"}],
                },
                "n": {"_type": "randint", "_value": [0, 20]},
            },
        ],
    }
}


def tree(point: dict[str, Any]) -> float:
    model = point["m"]
    if model["_name"] == "flat":
        return 1.0
    inner = 0.4 if model["k"]["_name"] == "q" else abs(model["k"]["z"] - 0.3)
    return inner + abs(model["n"] - 13) / 20


def made(space: dict[str, Any], **arguments: Any) -> TPETuner:
    return started(TPETuner(**{"seed": 0, **arguments}), space)


def best(tuner: Tuner, objective: Any, count: int) -> float:
    return min(search(tuner, objective, count))


def random_search(space: dict[str, Any], objective: Any, count: int) -> float:
    return float(np.median([best(started(RandomTuner(s), space), objective, count) for s in range(9)]))


@pytest.mark.parametrize(("space", "objective"), [(PLANE, plane), (TREE, tree)], ids=["plane", "tree"])
def test_it_beats_random_search_by_far(space: dict[str, Any], objective: Any) -> None:
    ours = [best(made(space, seed=seed), objective, 60) for seed in range(5)]
    assert np.median(ours) < 0.5 * random_search(space, objective, 60)


@pytest.mark.parametrize(("space", "objective"), [(PLANE, plane), (TREE, tree)], ids=["plane", "tree"])
def test_it_learns_without_a_prior(space: dict[str, Any], objective: Any) -> None:
    tuner = made(space, tpe_args={"prior_weight": 0, "gamma": 0.5, "n_startup_jobs": 5})
    assert best(tuner, objective, 60) < random_search(space, objective, 60)


def test_the_wrong_direction_is_worse_than_random() -> None:
    ours = [best(made(PLANE, seed=seed, optimize_mode="maximize"), plane, 60) for seed in range(5)]
    assert np.median(ours) > random_search(PLANE, plane, 60)


def test_start_up_jobs_are_spread_over_every_parameter() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 10]}, "c": {"_type": "choice", "_value": list("abcde")}}
    points = made(space).generate_multiple_parameters(range(10))
    assert sorted(int(point["x"]) for point in points) == list(range(10))
    assert sorted(point["c"] for point in points) == list("aabbccddee")


def test_imported_results_replace_start_up_jobs() -> None:
    tuner = made(PLANE, tpe_args={"constant_liar_type": None})
    rng = np.random.default_rng(0)
    known = [{"x": rng.uniform(-5, 5), "y": 10 ** rng.uniform(-3, 3)} for _ in range(60)]
    tuner.import_data([{"parameter": point, "value": {"default": plane(point)}} for point in known])
    points = tuner.generate_multiple_parameters(range(20))
    assert np.median([abs(point["x"] - 2) for point in points]) < 1


def trained(lie: str | None) -> TPETuner:
    tuner = made(LINE, tpe_args={"constant_liar_type": lie})
    best(tuner, lambda point: abs(point["x"] - 0.5), 30)
    return tuner


def spread(tuner: TPETuner) -> float:
    return float(np.std([point["x"] for point in tuner.generate_multiple_parameters(range(100, 140))]))


def test_running_trials_taken_for_bad_ones_repel() -> None:
    assert spread(trained("worst")) > 1.2 * spread(trained(None))


def test_the_mean_of_the_results_is_a_bad_lie() -> None:
    assert spread(trained("mean")) == spread(trained("worst"))
    assert spread(trained("mean")) != spread(trained("best")) != spread(trained(None))


def test_failures_are_avoided() -> None:
    tuner = made(
        {"c": {"_type": "choice", "_value": ["ok", "fails"]}, "x": {"_type": "uniform", "_value": [0, 1]}}
    )
    failures = 0
    for i in range(80):
        point = tuner.generate_parameters(i)
        failed = point["c"] == "fails"
        failures += failed and i >= 40
        if not failed:
            tuner.receive_trial_result(i, point, point["x"])
        tuner.trial_end(i, not failed)
    assert failures < 8


def test_nan_counts_as_a_failure() -> None:
    nan, failed = made(PLANE), made(PLANE)
    for i in range(40):
        points = [tuner.generate_parameters(i) for tuner in (nan, failed)]
        assert points[0] == points[1]
        if i % 3 == 0:
            nan.receive_trial_result(i, points[0], math.nan)
        else:
            for tuner in (nan, failed):
                tuner.receive_trial_result(i, points[0], plane(points[0]))
        nan.trial_end(i, True)
        failed.trial_end(i, i % 3 != 0)


def test_a_second_result_replaces_the_first() -> None:
    first, second = made(PLANE), made(PLANE)
    for i in range(30):
        points = [tuner.generate_parameters(i) for tuner in (first, second)]
        assert points[0] == points[1]
        first.receive_trial_result(i, points[0], plane(points[0]))
        if i % 2:
            second.trial_end(i, False)
        second.receive_trial_result(i, points[0], 0.0)
        second.receive_trial_result(i, points[0], plane(points[0]))


def test_a_changed_space_keeps_what_still_fits() -> None:
    tuner = made(PLANE)
    best(tuner, plane, 40)
    tuner.update_search_space({**PLANE, "x": {"_type": "uniform", "_value": [0, 5]}})
    points = tuner.generate_multiple_parameters(range(40, 52))
    assert np.median([abs(point["x"] - 2) for point in points]) < 1


def test_a_finite_space_ends_after_every_point_once() -> None:
    tuner = made({"a": {"_type": "randint", "_value": [0, 6]}, "b": {"_type": "choice", "_value": [1, 2]}})
    assert best(tuner, lambda point: point["a"] * point["b"], 12) == 0
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(12)


def test_the_values_of_results_do_not_shift_suggestions() -> None:
    tuners = [made(PLANE), made(PLANE)]
    for i in range(40):
        points = [tuner.generate_parameters(i) for tuner in tuners]
        assert points[0] == points[1]
        for tuner, shift in zip(tuners, (0.0, 1024.0), strict=True):
            tuner.receive_trial_result(i, points[0], round(plane(points[0]) * 64) / 64 + shift)


def test_nni_s_spelling_is_the_same_class() -> None:
    assert TpeTuner is TPETuner


def test_first_suggestion_does_not_wait_for_the_import_of_scipy() -> None:
    code = (
        "import sys; from pitchpipe.tuners import TPETuner; tuner = TPETuner(seed=1);"
        f"tuner.update_search_space({PLANE}); tuner.generate_parameters(0); print('scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
