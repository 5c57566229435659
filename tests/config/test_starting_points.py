"""Defaults, initial points and priors are checked against the search space, and each problem is named."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig
from pitchpipe.tuners import TPETuner

from ..tuners.searches import started
from .refusals import LAYERED, made

GOOD: dict[str, Any] = {"lr": 0.01, "units": 8, "layer": {"_name": "conv", "kernel": 3}}


def config(**fields: Any) -> ExperimentConfig:
    return made(**{"search_space": LAYERED, "max_trial_number": 9, **fields})


def test_points_run_in_order_each_once() -> None:
    other = {**GOOD, "units": 9}
    made = config(defaults=GOOD, initial_points=[other, {**GOOD, "units": 8.0}, other])
    assert [(point.source, point.parameters) for point in made.starting_points] == [
        ("defaults", GOOD),
        ("initial", other),
    ]


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


@pytest.mark.parametrize("prior", [None, {"centre": None}, {"Centre": None, "confidence": "medium"}])
def test_null_is_a_centre(prior: Any) -> None:
    features = {"_type": "choice", "_value": ["sqrt", None]}
    made = config(
        search_space={**LAYERED, "features": features}, priors={"features": prior}, tuner={"name": "TPE"}
    )
    priors = made.canonical()["priors"]
    assert priors == {"features": {"centre": None, "confidence": 0.5}}
    assert ExperimentConfig.from_canonical(made.canonical()) == made
    tuner = started(TPETuner(seed=1), {"features": features}, priors=priors)
    assert tuner.generate_parameters(0) == {"features": None}


@pytest.mark.parametrize(
    ("name", "prior"), [("lr", {"centre": None}), ("units", None), ("lr", {"confidence": 1})]
)
def test_prior_of_a_number_needs_a_number(name: str, prior: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        config(priors={name: prior})
    assert [problem.path for problem in raised.value.problems] == [("priors", name, "centre")]


def test_stored_points_survive_another_search_space() -> None:
    canonical = config(defaults=GOOD, priors={"lr": 0.01}).canonical()
    changed = {**canonical, "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}}}
    assert ExperimentConfig.from_canonical(changed).defaults == GOOD


def test_constants_of_the_space_need_not_be_written() -> None:
    made = config(
        search_space={**LAYERED, "epochs": 5}, defaults=GOOD, initial_points=[{**GOOD, "epochs": 5}]
    )
    assert [point.parameters for point in made.starting_points] == [{**GOOD, "epochs": 5}]


def test_constants_of_the_chosen_option_need_not_be_written() -> None:
    inner = {"_type": "choice", "_value": [{"_name": True, "pad": 2}, {"_name": 1, "pad": 3}]}
    layer = {
        "_type": "choice",
        "_value": [{"_name": "a", "bias": 0}, {"_name": "b", "bias": 1, "inner": inner}],
    }
    made = config(
        search_space={"layer": layer},
        defaults={"layer": {"_name": "b", "inner": {"_name": 1}}},
        initial_points=[{"layer": {"_name": "a"}}, {"layer": {"_name": "b", "inner": {"_name": True}}}],
    )
    assert [point.parameters["layer"] for point in made.starting_points] == [
        {"_name": "b", "bias": 1, "inner": {"_name": 1, "pad": 3}},
        {"_name": "a", "bias": 0},
        {"_name": "b", "bias": 1, "inner": {"_name": True, "pad": 2}},
    ]
    assert not made.warnings
