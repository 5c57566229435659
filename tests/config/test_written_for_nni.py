"""Configs in NNI's form: what is passed over, what has another name, and that nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.compat.nni.config_forms import OTHER_PLATFORMS, with_todays_arguments
from pitchpipe.config import ExperimentConfig, load_config, with_plugins_checked

from .refusals import SMALLEST, V1, made, problems_of

OBJECTS = {"_type": "choice", "_value": [{"a": 1, "_type": "x"}, {"_name": "b"}]}
SPACES: dict[str, tuple[Any, Any, int]] = {
    "extra key": (
        {"_type": "choice", "_value": ["a"], "n": {"_type": "choice", "_value": [1]}, "note": "x"},
        {"_type": "choice", "_value": ["a"]},
        2,
    ),
    "space": ({"_type": " quniform\t", "_value": [1, 9, 2]}, {"_type": "quniform", "_value": [1, 9, 2]}, 1),
    "four": ({"_type": "loguniform", "_value": [1, 2, 3, 4]}, {"_type": "loguniform", "_value": [1, 2]}, 1),
    "step": ({"_type": "uniform", "_value": [0, 1, 0.1]}, {"_type": "uniform", "_value": [0, 1]}, 1),
    "q of four": ({"_type": "qnormal", "_value": [0, 1, 2, 3]}, {"_type": "qnormal", "_value": [0, 1, 2]}, 1),
    "fractions": ({"_type": "randint", "_value": [1.0, 9.5]}, {"_type": "randint", "_value": [1, 10]}, 1),
    "nested": (
        {
            "_type": "choice",
            "_value": [{"_name": "a", "k": {"_type": "normal ", "_value": [0, 1, 2], "z": 1}}],
        },
        {"_type": "choice", "_value": [{"_name": "a", "k": {"_type": "normal", "_value": [0, 1]}}]},
        3,
    ),
    "objects": (
        {"_type": "choice", "_value": [{"a": 1, "_type": "x"}]},
        {"_type": "choice", "_value": [{"a": 1, "_type": "x"}]},
        0,
    ),
}


@pytest.mark.parametrize(("given", "read", "remarks"), SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("form", ["v1", "v2", "v2 file"])
def test_what_nni_passes_over_is_left_out(
    given: Any, read: Any, remarks: int, form: str, tmp_path: Path
) -> None:
    (tmp_path / "space.yml").write_text(f"p: {json.dumps(given)}")
    data: dict[str, Any] = {
        "v1": {**V1, "maxTrialNum": 1, "searchSpace": {"p": given}},
        "v2": {"searchSpace": {"p": given}, "trialCommand": "x", "maxTrialNumber": 1},
        "v2 file": {"searchSpaceFile": "space.yml", "trialCommand": "x", "maxTrialNumber": 1},
    }[form]
    config = ExperimentConfig.from_dict(data, tmp_path)
    assert config.search_space == {"p": read}
    assert len(config.warnings) == remarks, config.warnings
    if given != read:  # in a config of ours, each is a mistake
        assert problems_of({**SMALLEST, "search_space": {"p": given}})


OWN = {"tuner": {"className": "mine.Tuner", "codeDirectory": "."}}
OWN_V1 = {**V1, "searchSpace": None, "tuner": {"codeDir": ".", "classFileName": "mine.py", "className": "T"}}
OURS = {"trial_command": "x", "tuner": {"class_name": "mine.T", "code_directory": "."}}


def test_own_tuner_gets_the_space_as_it_is() -> None:
    space = {"p": {"_type": "choice", "_value": [1], "depth": 3}}
    config = ExperimentConfig.from_dict({"searchSpace": space, "trialCommand": "x", **OWN})
    assert config.search_space == space


def test_only_an_own_tuner_in_nnis_form_needs_no_space() -> None:
    for form in ({"trialCommand": "x", **OWN}, OWN_V1):
        config = ExperimentConfig.from_dict(form)
        assert config.search_space == {}
        assert [line for line in config.warnings if "search space" in line]
    for form in ({"trialCommand": "x"}, OURS):
        assert len(problems_of(form)) == 1


def test_words_that_are_booleans_to_nni_are_booleans(tmp_path: Path) -> None:
    inline = "{p: {_type: choice, _value: [yes, 'no', off]}}"
    (tmp_path / "space.yml").write_text(inline)
    nnis, booleans = "trialCommand: x\nmaxTrialNumber: 1\ndebug: yes\n", [True, "no", False]
    for text, values, remarks in (
        (f"{nnis}searchSpace: {inline}", booleans, 1),
        (f"{nnis}searchSpaceFile: space.yml", booleans, 2),
        (f"trial_command: x\nmax_trial_number: 1\nsearch_space: {inline}", ["yes", "no", "off"], 0),
    ):
        (tmp_path / "config.yml").write_text(text)
        config = load_config(tmp_path / "config.yml", check_plugins=False)
        assert config.search_space is not None
        found = config.search_space["p"]["_value"], config.debug, len(config.warnings)
        assert found == (values, "debug" in text, remarks)


@pytest.mark.parametrize(
    ("given", "todays"),
    [
        ({"constant_liar_type": "min"}, {"tpe_args": {"constant_liar_type": "best"}}),
        ({"constant_liar_type": "max"}, {"tpe_args": {"constant_liar_type": "worst"}}),
        ({"parallel_optimize": True}, {"tpe_args": {"constant_liar_type": "best"}}),
        ({"parallel_optimize": False, "constant_liar_type": "mean", "seed": 1}, {"seed": 1}),
        (
            {"constant_liar_type": "mean", "tpe_args": {"gamma": 0.3}},
            {"tpe_args": {"constant_liar_type": "mean", "gamma": 0.3}},
        ),
        ({"constant_liar_type": "least"}, {"constant_liar_type": "least"}),
        ({"constant_liar_type": 3}, {"constant_liar_type": 3}),
        ({"parallel_optimize": "yes"}, {"parallel_optimize": "yes"}),
        ({"constant_liar_type": "min", "tpe_args": 3}, {"constant_liar_type": "min", "tpe_args": 3}),
        ({"seed": 1}, {"seed": 1}),
    ],
)
def test_arguments_of_tpe_become_todays(given: dict[str, Any], todays: dict[str, Any]) -> None:
    for name in ("TPE", "tpe_legacy"):
        assert with_todays_arguments(name, given) == todays


def test_arguments_of_others_stay() -> None:
    given = {"parallel_optimize": True, "constant_liar_type": "min"}
    assert with_todays_arguments("Anneal", given) == with_todays_arguments(None, given) == given


def test_config_with_them_is_valid() -> None:
    arguments = {"optimize_mode": "maximize", "constant_liar_type": "min"}
    config = ExperimentConfig.from_dict(
        {
            "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "trialCommand": "x",
            "tuner": {"name": "TPE", "classArgs": arguments},
        }
    )
    checked = with_plugins_checked(config)
    assert checked.tuner.class_args["tpe_args"] == {"constant_liar_type": "best"}


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
