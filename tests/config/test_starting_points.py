"""Defaults, initial points and priors are checked against the search space, and each problem is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig, load_config

SPACE: dict[str, Any] = {
    "lr": {"_type": "loguniform", "_value": [1e-5, 0.1]},
    "units": {"_type": "randint", "_value": [1, 65]},
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "conv", "kernel": {"_type": "choice", "_value": [3, 5]}},
            {"_name": "pool", "kernel": {"_type": "randint", "_value": [2, 9]}},
        ],
    },
}
GOOD: dict[str, Any] = {"lr": 0.01, "units": 8, "layer": {"_name": "conv", "kernel": 3}}


def config(**fields: Any) -> ExperimentConfig:
    data = {"search_space": SPACE, "trial_command": "x", "max_trial_number": 9, **fields}
    return ExperimentConfig.from_dict(data)


def problems_of(**fields: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config(**fields)
    return [str(problem) for problem in caught.value.problems]


def test_points_run_in_order_each_once() -> None:
    other = {**GOOD, "units": 9}
    made = config(defaults=GOOD, initial_points=[other, {**GOOD, "units": 8.0}, other])
    assert [(point.source, point.parameters) for point in made.starting_points] == [
        ("defaults", GOOD),
        ("initial", other),
    ]
    assert made.warnings == [
        "initial_points[1] repeats defaults: it runs once",
        "initial_points[2] repeats initial_points[0]: it runs once",
    ]


def test_source_of_a_warm_start_that_is_named_twice_is_a_warning() -> None:
    assert config(warm_start=["one", "other", "one"]).warnings == [
        "warm_start names one 2 times: it is read once"
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"lr": 0.5}, "defaults.lr: 0.5 is outside [1e-05, 0.1]"),
        ({"units": 2.5}, "defaults.units: 2.5 is not an integer"),
        ({"units": "8"}, "defaults.units: '8' is not an integer"),
        (
            {"unit": 8},
            "defaults.unit: there is no such parameter (did you mean 'units'?)",
        ),
        (
            {"layer": {"_name": "konv", "kernel": 3}},
            "defaults.layer._name: 'konv' is not one of 'conv', 'pool', did you mean 'conv'?",
        ),
        ({"layer": {"_name": "conv", "kernel": 4}}, "defaults.layer.kernel: 4 is not one of 3, 5"),
        ({"layer": {"_name": "conv"}}, "defaults.layer.kernel: is missing"),
    ],
)
def test_defaults_are_a_point_of_the_space(change: dict[str, Any], problem: str) -> None:
    assert problems_of(defaults={**GOOD, **change}) == [problem]


def test_missing_parameters_are_named() -> None:
    assert problems_of(defaults={"lr": 0.01}, initial_points=[GOOD, {}]) == [
        "defaults.units: is missing",
        "defaults.layer: is missing",
        "initial_points[1].lr: is missing",
        "initial_points[1].units: is missing",
        "initial_points[1].layer: is missing",
    ]


def test_points_meet_the_constraints() -> None:
    assert problems_of(defaults=GOOD, constraints=["units >= 16"]) == [
        "defaults: violates the constraint units >= 16"
    ]


def test_problem_of_a_point_has_its_place_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yml"
    file.write_text(
        "search_space:\n  x: {_type: uniform, _value: [0, 1]}\ntrial_command: x\ninitial_points:\n  - {x: 2}\n"
    )
    with pytest.raises(
        ConfigError, match=r"experiment.yml:5:9: initial_points\[0\].x: 2 is outside \[0, 1\]"
    ):
        load_config(file, check_plugins=False)


def test_points_that_no_trial_is_left_for_are_said() -> None:
    made = config(defaults=GOOD, initial_points=[{**GOOD, "units": i} for i in (1, 2, 3)], max_trial_number=2)
    expected = "max_trial_number (2) leaves out 2 of the 4 points of defaults and initial_points"
    assert made.warnings == [expected]


def test_prior_has_a_centre_and_a_confidence() -> None:
    made = config(
        priors={"lr": {"Centre": 0.01, "confidence": "High"}, "units": 8, "layer": "pool", "layer.kernel": 3}
    )
    assert made.canonical()["priors"] == {
        "lr": {"centre": 0.01, "confidence": 0.75},
        "units": {"centre": 8, "confidence": 0.5},
        "layer": {"centre": "pool", "confidence": 0.5},
        "layer.kernel": {"centre": 3, "confidence": 0.5},
    }
    assert ExperimentConfig.from_canonical(made.canonical()) == made


@pytest.mark.parametrize(
    ("priors", "problem"),
    [
        ({"lr": 1}, "priors.lr.centre: 1 is outside [1e-05, 0.1]"),
        ({"unit": 8}, "priors.unit: there is no such parameter (did you mean units?)"),
        ({"layer": "conf"}, "priors.layer.centre: 'conf' is not one of 'conv', 'pool', did you mean 'conv'?"),
        (
            {"lr": {"centre": 0.01, "confidence": "hihg"}},
            'priors.lr.confidence: must be low, medium, high, or a number from 0 to 1, not "hihg" (did you mean high?)',
        ),
        (
            {"lr": {"centre": 0.01, "confidence": 1.5}},
            "priors.lr.confidence: must be low, medium, high, or a number from 0 to 1, not 1.5",
        ),
        ({"lr": {"confidence": "low"}}, "priors.lr.centre: required field is missing"),
        ({"lr": {"center": 0.01}}, "priors.lr.center: unknown field (did you mean centre?)"),
    ],
)
def test_malformed_prior_is_named(priors: dict[str, Any], problem: str) -> None:
    assert problems_of(priors=priors) == [problem]


def test_malformed_prior_hides_no_other_problem() -> None:
    priors = {"lr": {"centre": 1, "confidence": "higher"}, "layer": "conf", "z": 1, "units": {}}
    assert problems_of(priors=priors, keep_close=True) == [
        'priors.lr.confidence: must be low, medium, high, or a number from 0 to 1, not "higher" (did you mean high?)',
        "priors.units.centre: required field is missing",
        "keep_close: needs `defaults`: the parameters to which the proposal is to be close",
        "priors.lr.centre: 1 is outside [1e-05, 0.1]",
        "priors.layer.centre: 'conf' is not one of 'conv', 'pool', did you mean 'conv'?",
        "priors.z: there is no such parameter",
    ]


def test_tuner_that_does_not_use_priors_is_named() -> None:
    assert config(priors={"lr": 0.01}, tuner={"name": "Tpe"}).warnings == []
    warning = "priors have no effect: the tuner Random does not use them"
    assert config(priors={"lr": 0.01}, tuner={"name": "Random"}).warnings == [warning]


def test_stored_points_survive_another_search_space() -> None:
    canonical = config(defaults=GOOD, priors={"lr": 0.01}).canonical()
    changed = {**canonical, "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}}}
    assert ExperimentConfig.from_canonical(changed).defaults == GOOD


def test_closeness_needs_defaults() -> None:
    assert problems_of(keep_close=True) == [
        "keep_close: needs `defaults`: the parameters to which the proposal is to be close"
    ]
    assert config(keep_close=True, defaults=GOOD).keep_close


def test_constants_of_the_space_need_not_be_written() -> None:
    made = config(search_space={**SPACE, "epochs": 5}, defaults=GOOD, initial_points=[{**GOOD, "epochs": 5}])
    assert [point.parameters for point in made.starting_points] == [{**GOOD, "epochs": 5}]
    assert problems_of(search_space={**SPACE, "epochs": 5}, defaults={**GOOD, "epochs": 6}) == [
        "defaults.epochs: 6 is not one of 5"
    ]
