"""What several fields say together."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig

from .refusals import SMALLEST


def algorithm(mode: str | None, name: str = "X") -> dict[str, Any]:
    return {"name": name, "class_args": {} if mode is None else {"optimize_mode": mode}}


@pytest.mark.parametrize(
    ("tuner", "assessor", "direction"),
    [
        ("maximize", None, "maximize"),
        (None, "maximize", "maximize"),
        ("maximize", "maximize", "maximize"),
        (None, None, "minimize"),
    ],
)
def test_direction_comes_from_the_algorithms(tuner: str | None, assessor: str | None, direction: str) -> None:
    data = {**SMALLEST, "tuner": algorithm(tuner), "assessor": algorithm(assessor)}
    (objective,) = ExperimentConfig.from_dict(data).objectives
    assert (objective.name, objective.direction) == ("default", direction)


def test_optimize_mode_is_about_the_default_objective() -> None:
    objectives = [{"name": "cost", "direction": "minimize"}, {"name": "default", "direction": "maximize"}]
    config = ExperimentConfig.from_dict(
        {**SMALLEST, "tuner": algorithm("maximize"), "objectives": objectives}
    )
    assert len(config.objectives) == 2


def test_optimize_mode_of_a_class_of_the_user_s_is_its_own_affair() -> None:
    tuner = {"class_name": "m.C", "code_directory": ".", "class_args": {"optimize_mode": "pareto"}}
    assert ExperimentConfig.from_dict({**SMALLEST, "tuner": tuner}).objectives[0].direction == "minimize"


def test_limit_that_users_lower_later_does_not_make_a_stop_rule_invalid() -> None:
    config = ExperimentConfig.from_dict({**SMALLEST, "stop_when": {"expected_gain_below": 0.1}})
    lowered = {**config.canonical(), "maxTrialNumber": 3}
    assert ExperimentConfig.from_canonical(lowered).max_trial_number == 3


def test_stop_rule_may_be_spelled_like_any_field_and_is_kept() -> None:
    config = ExperimentConfig.from_dict({**SMALLEST, "stopWhen": {"expectedGainBelow": 1, "MIN_TRIALS": 9}})
    assert config.canonical()["stopWhen"] == {"expectedGainBelow": 1.0, "minTrials": 9}
    assert ExperimentConfig.from_canonical(config.canonical()) == config


MINE = {"class_name": "mine.Tuner", "code_directory": "."}
FREE = {"x": [1, 100], "route": {"_type": "factor", "_value": 3}}


def test_search_space_in_any_form_goes_unread_to_a_tuner_of_the_users() -> None:
    config = ExperimentConfig.from_dict({**SMALLEST, "search_space": FREE, "tuner": MINE})
    assert config.search_space == FREE
    assert ExperimentConfig.from_canonical(config.canonical()) == config


@pytest.mark.parametrize(
    "more",
    [
        {"tuner": "TPE"},
        {"tuner": MINE, "constraints": ["x < 3"]},
        {"tuner": MINE, "initial_points": [{"x": 1}]},
        {"tuner": MINE, "priors": {"x": 1}},
        {"tuner": MINE, "defaults": {"x": 1}},
    ],
)
def test_search_space_that_others_read_has_the_usual_form(more: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="search_space"):
        ExperimentConfig.from_dict({**SMALLEST, "search_space": FREE, **more})
