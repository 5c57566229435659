"""Key spelling, aliases, and what only other tuners' files say."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config.draft import make_draft
from pitchpipe.config.problems import fold
from pitchpipe.config.sections import AlgorithmConfig
from pitchpipe.config.written_for_nni import OTHER_PLATFORMS

from .refusals import SMALLEST, made, problems_of


@pytest.mark.parametrize("key", ["trial_command", "trialCommand", "TRIALCOMMAND", "Trial_Command_"])
def test_spellings_of_one_field_fold_to_one(key: str) -> None:
    assert fold(key) == "trialcommand"


def test_keys_of_values_passed_on_keep_their_spelling() -> None:
    arguments = {"camelCase": 1, "snake_case": {"Inner_Key": None}}
    more = {"trialResources": {"TPU_v4": 1}, "TRIAL_ENVIRONMENT": {"My_Var": "x"}}
    config = made(Tuner={"Name": "X", "ClassArgs": arguments}, **more)
    assert config.tuner.class_args == arguments
    assert config.trial_resources == {"TPU_v4": 1.0}
    assert config.trial_environment == {"My_Var": "x"}


@pytest.mark.parametrize(
    ("algorithms", "tuner", "assessor"),
    [
        ({"tuner": "Random", "assessor": "Medianstop"}, "Random", "Medianstop"),
        ({"tuner": "none", "assessor": "none"}, "none", None),
        ({"assessor": {"name": "none"}}, "Auto", None),
        ({"assessor": "_none_"}, "Auto", None),
        ({"tuner": {"name": "_none_"}, "assessor": {"name": "_none_"}}, "Auto", None),
        ({"tuner": {"name": "X", "class_args": None}, "assessor": None, "seed": None}, "X", None),
        ({"advisor": {"Name": "X"}}, "X", None),
    ],
)
def test_algorithm_has_a_name_or_is_left_out(
    algorithms: dict[str, Any], tuner: str, assessor: str | None
) -> None:
    config = made(**algorithms)
    assert config.tuner == AlgorithmConfig(name=tuner)
    assert config.assessor == (None if assessor is None else AlgorithmConfig(name=assessor))
    assert config.seed is None


@pytest.mark.parametrize("platform", OTHER_PLATFORMS)
def test_platform_that_is_known_but_not_run_is_one_problem(platform: str) -> None:
    service = {"platform": platform, "machine_list": [{"host": 1}]}
    (problem,) = problems_of({**SMALLEST, "training_service": service})
    assert problem.startswith(f'training_service.platform: platform "{platform}" is not supported')


def test_of_several_platforms_the_local_one_runs() -> None:
    services = [{"platform": "aml"}, {"platform": "local", "trialCommand": "inner", "useActiveGpu": True}]
    config = made(training_service=services)
    assert config.trial_command == "inner"
    assert config.canonical()["trainingService"]["useActiveGpu"] is True


def test_shared_fields_in_the_training_service_win_over_the_root() -> None:
    service = {"platform": "local", "trialCommand": "inner", "trial_gpu_number": 1, "debug": True}
    config = made(debug=False, training_service=service)
    assert (config.trial_command, config.trial_gpu_number, config.debug) == ("inner", 1.0, True)
    assert "trialCommand" not in config.canonical()["trainingService"]


def test_draft_of_any_data_does_not_raise() -> None:
    for value in (None, 1, "x", [], {}, {"a": {}}, [{}], [None]):
        for name in ("tuner", "assessor", "advisor", "objectives", "training_service"):
            make_draft({name: value})
