"""What several fields say together."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig, with_plugins_checked
from pitchpipe.manager.run_settings import request_of, run_of
from pitchpipe.store import ExperimentFolder

from .refusals import made, problems_of


def algorithm(mode: str | None) -> dict[str, Any]:
    return {"name": "X", "class_args": {} if mode is None else {"optimize_mode": mode}}


PARETO = {"class_name": "m.C", "code_directory": ".", "class_args": {"optimize_mode": "pareto"}}


@pytest.mark.parametrize(
    ("tuner", "assessor", "direction"),
    [
        (algorithm("maximize"), algorithm(None), "maximize"),
        (algorithm(None), algorithm("maximize"), "maximize"),
        (algorithm("maximize"), algorithm("maximize"), "maximize"),
        (algorithm(None), algorithm(None), "minimize"),
        (PARETO, None, "minimize"),  # a class of the user's: its mode is its own affair
    ],
)
def test_direction_comes_from_the_algorithms(tuner: Any, assessor: Any, direction: str) -> None:
    (objective,) = made(tuner=tuner, assessor=assessor).objectives
    assert (objective.name, objective.direction) == ("default", direction)


def test_optimize_mode_is_about_the_default_objective() -> None:
    objectives = [{"name": "cost", "direction": "minimize"}, {"name": "default", "direction": "maximize"}]
    assert len(made(tuner=algorithm("maximize"), objectives=objectives).objectives) == 2


def test_no_objective_has_to_be_called_default() -> None:
    loss = {"name": "loss", "direction": "minimize"}
    config = made(objectives=[loss, {"name": "ms", "constraint": " <= 20 "}])
    assert config.canonical()["objectives"] == [loss, {"name": "ms", "constraint": "<= 20"}]
    assert config.goal == "minimizing loss, limit ms <= 20"
    assert ExperimentConfig.from_canonical(config.canonical()) == config


def test_limit_that_users_lower_later_does_not_make_a_stop_rule_invalid() -> None:
    config = made(stop_when={"expected_gain_below": 0.1})
    lowered = {**config.canonical(), "maxTrialNumber": 3}
    assert ExperimentConfig.from_canonical(lowered).max_trial_number == 3


def test_stop_rule_may_be_spelled_like_any_field_and_is_kept() -> None:
    config = made(stopWhen={"expectedGainBelow": 1, "MIN_TRIALS": 9})
    assert config.canonical()["stopWhen"] == {"expectedGainBelow": 1.0, "minTrials": 9}
    assert dict(ExperimentConfig.from_canonical(config.canonical())) == dict(config)


def test_option_that_json_cannot_hold_is_refused_in_a_new_config_and_kept_in_a_stored_one() -> None:
    space = {"x": {"_type": "choice", "_value": [math.nan, 1]}}
    with pytest.raises(ConfigError) as refused:
        made(search_space=space)
    assert [problem.path for problem in refused.value.problems] == [("search_space", "x", "_value", 0)]
    stored = {**made().canonical(), "searchSpace": space}
    kept = ExperimentConfig.from_canonical(stored).search_space
    assert kept is not None
    assert math.isnan(kept["x"]["_value"][0])


MINE = {"class_name": "mine.Tuner", "code_directory": "."}
FREE = {"x": [1, 100], "route": {"_type": "factor", "_value": 3}}


def test_search_space_in_any_form_goes_unread_to_a_tuner_of_the_users() -> None:
    config = made(search_space=FREE, tuner=MINE)
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
        made(search_space=FREE, **more)


CLUSTER = {"platform": "ray", "address": "10.0.0.1:6379"}


def test_trial_takes_what_its_processes_need(tmp_path: Any) -> None:
    asked = {"processes": 4, "gpus_per_process": 1, "nodes": 2, "cpus_per_process": 3}
    config = made(resources=asked, training_service=CLUSTER, trial_memory_size="8gb")
    request = request_of(config)
    assert (request.cpus, request.gpus, request.nodes) == (12, 4, 2)
    assert (request.per_node.cpus, request.per_node.gpus, request.per_node.memory) == (6, 2, 4 * 2**30)
    run = run_of(config, ExperimentFolder(tmp_path))
    assert (run.processes, run.nodes, run.memory_limit) == (4, 2, 4 * 2**30)
    assert ExperimentConfig.from_canonical(config.canonical()) == config


def test_gpus_stay_as_they_are_unless_processes_take_some() -> None:
    assert request_of(made(resources={"processes": 2})).gpus is None
    assert request_of(made(resources={"processes": 2, "gpus_per_process": 0})).gpus == 0


def test_function_trial_is_one_process() -> None:
    (problem,) = problems_of({"search_space": {}, "resources": {"processes": 2}}, needs_command=False)
    assert problem.startswith("resources: needs a trial_command")


def test_number_is_short_for_a_count() -> None:
    config = made(repeats=5)
    assert config.repeats is not None
    assert (config.repeats.count, config.repeats.seed, config.repeats.race) == (5, True, True)
    assert ExperimentConfig.from_canonical(config.canonical()) == config
    assert made(Repeats={"Count": 5}).repeats == config.repeats
    assert made().repeats is None


def test_tuner_that_follows_single_trials_is_refused() -> None:
    given = made(repeats=3, tuner={"name": "ASHA"})
    with pytest.raises(ConfigError, match=r"repeats: .*follows single trials.*such as Auto or TPE"):
        with_plugins_checked(given)
