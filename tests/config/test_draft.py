"""Key spelling, aliases, and what only other tuners' files say."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.config.draft import fold, make_draft
from pitchpipe.config.elsewhere import OTHER_PLATFORMS

from .refusals import SMALLEST, problems_of


@pytest.mark.parametrize("key", ["trial_command", "trialCommand", "TRIALCOMMAND", "Trial_Command_"])
def test_spellings_of_one_field_fold_to_one(key: str) -> None:
    assert fold(key) == "trialcommand"


def test_keys_of_values_passed_on_keep_their_spelling() -> None:
    data = {
        **SMALLEST,
        "Tuner": {"Name": "X", "ClassArgs": {"camelCase": 1, "snake_case": {"Inner_Key": None}}},
        "trialResources": {"TPU_v4": 1},
        "TRIAL_ENVIRONMENT": {"My_Var": "x"},
    }
    config = ExperimentConfig.from_dict(data)
    assert config.tuner.class_args == {"camelCase": 1, "snake_case": {"Inner_Key": None}}
    assert config.trial_resources == {"TPU_v4": 1.0}
    assert config.trial_environment == {"My_Var": "x"}


def test_null_means_not_set_in_sections() -> None:
    data = {**SMALLEST, "seed": None, "assessor": None, "tuner": {"name": "X", "class_args": None}}
    config = ExperimentConfig.from_dict(data)
    assert (config.seed, config.assessor, config.tuner.class_args) == (None, None, {})


@pytest.mark.parametrize("none", ["none", {"name": "none"}, "_none_"])
def test_assessor_none_is_no_assessor(none: Any) -> None:
    assert ExperimentConfig.from_dict({**SMALLEST, "assessor": none}).assessor is None
    assert ExperimentConfig.from_dict({**SMALLEST, "tuner": "none"}).tuner.name == "none"


def test_advisor_is_the_tuner_and_problems_keep_its_name() -> None:
    config = ExperimentConfig.from_dict({**SMALLEST, "advisor": {"Name": "X", "class_args": {"a": 1}}})
    assert (config.tuner.name, config.tuner.class_args) == ("X", {"a": 1})


def test_placeholder_name_means_not_set() -> None:
    config = ExperimentConfig.from_dict(
        {**SMALLEST, "tuner": {"name": "_none_"}, "assessor": {"name": "_none_"}}
    )
    assert (config.tuner.name, config.assessor) == ("Auto", None)


@pytest.mark.parametrize("platform", OTHER_PLATFORMS)
def test_platform_that_is_known_but_not_run_is_one_problem(platform: str) -> None:
    service = {"platform": platform, "machine_list": [{"host": 1}]}
    (problem,) = problems_of({**SMALLEST, "training_service": service})
    assert problem.startswith(f'training_service.platform: platform "{platform}" is not supported')


def test_of_several_platforms_the_local_one_runs() -> None:
    services = [{"platform": "aml"}, {"platform": "local", "trialCommand": "inner", "useActiveGpu": True}]
    config = ExperimentConfig.from_dict({**SMALLEST, "training_service": services})
    assert config.trial_command == "inner"
    assert config.canonical()["trainingService"]["useActiveGpu"] is True


def test_shared_fields_in_the_training_service_win_over_the_root() -> None:
    service = {"platform": "local", "trialCommand": "inner", "trial_gpu_number": 1, "debug": True}
    config = ExperimentConfig.from_dict({**SMALLEST, "debug": False, "training_service": service})
    assert (config.trial_command, config.trial_gpu_number, config.debug) == ("inner", 1.0, True)
    assert "trialCommand" not in config.canonical()["trainingService"]


def test_draft_of_any_data_does_not_raise() -> None:
    for value in (None, 1, "x", [], {}, {"a": {}}, [{}], [None]):
        for name in ("tuner", "assessor", "advisor", "objectives", "training_service"):
            make_draft({name: value})
