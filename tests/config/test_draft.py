"""Key spelling, aliases, and what only other tuners' files say."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig
from pitchpipe.config.draft import fold, make_draft
from pitchpipe.config.elsewhere import OTHER_PLATFORMS

SMALLEST = {"search_space": {}, "trial_command": "x"}


def problems_of(data: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig.from_dict(data)
    return [str(problem) for problem in caught.value.problems]


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


def test_two_spellings_of_one_field_are_a_problem() -> None:
    assert problems_of({**SMALLEST, "trialCommand": "y"}) == [
        "trialCommand: is the same field as trial_command"
    ]


def test_two_spellings_inside_a_section_are_a_problem() -> None:
    problems = problems_of(
        {**SMALLEST, "Tuner": {"className": "a.B", "class_name": "a.B", "codeDirectory": "."}}
    )
    assert problems == ["Tuner.class_name: is the same field as Tuner.className"]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("max_trial_numbr", "did you mean max_trial_number?"),
        ("maxTrialNumbr", "did you mean maxTrialNumber?"),
        ("maxExecDuration", "NNI v1's name of maxExperimentDuration"),
        ("max_exec_duration", "NNI v1's name of max_experiment_duration"),
        ("authorName", "of NNI v1: remove it"),
        ("max_trails", "did you mean max_trial_number?"),
        ("maxTrials", "did you mean maxTrialNumber?"),
        ("n_jobs", "did you mean trial_concurrency?"),
        ("xyzzy", ""),
    ],
)
def test_unknown_field_has_a_hint(key: str, hint: str) -> None:
    (problem,) = problems_of({**SMALLEST, key: 1})
    assert problem == f"{key}: unknown field" + (f" ({hint})" if hint else "")


def test_direction_at_the_root_belongs_in_objectives() -> None:
    assert problems_of({**SMALLEST, "direction": "maximize"}) == [
        "direction: unknown field (it belongs in objectives: [{name: default, direction: maximize}])"
    ]


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
    assert problems_of({**SMALLEST, "Advisor": {"name": 3}})[0].startswith("Advisor.name: must be text")


def test_advisor_beside_a_tuner_is_a_problem() -> None:
    (problem,) = problems_of({**SMALLEST, "advisor": {"name": "X"}, "tuner": {"name": "Y"}})
    assert problem.startswith("advisor: is another name of tuner")


def test_placeholder_name_means_not_set() -> None:
    config = ExperimentConfig.from_dict(
        {**SMALLEST, "tuner": {"name": "_none_"}, "assessor": {"name": "_none_"}}
    )
    assert (config.tuner.name, config.assessor) == ("Auto", None)


@pytest.mark.parametrize("platform", [*OTHER_PLATFORMS, "Remote"])
def test_platform_that_is_known_but_not_run_is_one_problem(platform: str) -> None:
    (problem,) = problems_of(
        {**SMALLEST, "training_service": {"platform": platform, "machine_list": [{"host": 1}]}}
    )
    assert problem == (
        f'training_service.platform: platform "{platform}" is not supported '
        "(start Ray there, `pitchpipe cluster up --hosts A,B`, "
        "and write training_service: {platform: ray, address: HOST:6379})"
    )


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ({"platform": "locla"}, 'unknown platform "locla" (did you mean local?)'),
        ({"platform": 3}, "unknown platform 3 (platform: local or platform: ray)"),
        ({"use_active_gpu": True}, "required field is missing (platform: local or platform: ray)"),
        ([{"platform": "remote"}], "a list of training services is not supported (give one;"),
        ([{"platform": "local"}] * 2, "a list of training services is not supported"),
        ([{"platform": "local"}, {"platform": "ray"}], "a list of training services is not supported"),
        ([{"platform": "local"}, 3], "a list of training services is not supported"),
        ([{"platform": "remote"}, {"platform": "local", "a": 1}], "training_service[1].a: unknown field"),
        ({"platform": "ray", "gpuIndices": [1]}, "unknown field (a field of platform local)"),
        ({"platform": "local", "gpu_indexes": [1]}, "unknown field (did you mean gpu_indices?)"),
    ],
)
def test_training_service_that_cannot_be_used_is_one_problem(service: Any, expected: str) -> None:
    (problem,) = problems_of({**SMALLEST, "training_service": service})
    assert expected in problem


HYBRID = [
    {
        "platform": "remote",
        "machineList": [
            {"host": "10.1.1.1", "user": "ada", "password": "secret", "port": 2222},
            {"host": "node2", "port": 2222},
            {"host": "${your server}"},
        ],
    },
    {"platform": "local", "trialCommand": "inner", "useActiveGpu": True},
    {"platform": "aml"},
]


def test_of_several_platforms_the_local_one_runs_and_the_others_are_one_warning() -> None:
    config = ExperimentConfig.from_dict({**SMALLEST, "max_trial_number": 1, "training_service": HYBRID})
    assert config.trial_command == "inner"
    assert config.canonical()["trainingService"]["useActiveGpu"] is True
    assert config.warnings == [
        "trials run on this machine only, not on remote, aml; for others, start Ray there, "
        '`pitchpipe cluster up --hosts ada@10.1.1.1,node2 --ssh "ssh -p 2222"`, '
        "and write training_service: {platform: ray, address: 10.1.1.1:6379}"
    ]


def test_list_of_the_local_platform_alone_is_that_platform() -> None:
    config = ExperimentConfig.from_dict(
        {**SMALLEST, "max_trial_number": 1, "training_service": [{"platform": "local"}]}
    )
    assert (config.training_service.platform, config.warnings) == ("local", [])


def test_shared_fields_in_the_training_service_win_over_the_root() -> None:
    service = {"platform": "local", "trialCommand": "inner", "trial_gpu_number": 1, "debug": True}
    config = ExperimentConfig.from_dict({**SMALLEST, "debug": False, "training_service": service})
    assert (config.trial_command, config.trial_gpu_number, config.debug) == ("inner", 1.0, True)
    assert "trialCommand" not in config.canonical()["trainingService"]


def test_problem_of_a_shared_field_is_where_it_was_written() -> None:
    (problem,) = problems_of({**SMALLEST, "trainingService": {"platform": "local", "trialCommand": 3}})
    assert problem.startswith("trainingService.trialCommand: must be text")


@pytest.mark.parametrize(
    ("data", "word"), [(None, "is empty"), ([1], "must be a mapping"), ("x", "must be a mapping")]
)
def test_data_that_is_not_a_mapping_is_one_problem(data: Any, word: str) -> None:
    (problem,) = problems_of(data)
    assert problem.startswith(word)


def test_draft_of_any_data_does_not_raise() -> None:
    for value in (None, 1, "x", [], {}, {"a": {}}, [{}], [None]):
        for name in ("tuner", "assessor", "advisor", "objectives", "training_service"):
            make_draft({name: value})
