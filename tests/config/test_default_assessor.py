"""The defaults of a config in NNI's form are NNI's: the assessor, and the direction.

Elsewhere, a config that names no assessor gets `Auto` where only time limits the search.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.compat.nni.config import ExperimentConfig as NniConfig
from pitchpipe.config import ExperimentConfig, load_config
from pitchpipe.config.plugins import PluginCheck

from .refusals import V1

TIMED: dict[str, Any] = {"search_space": {}, "trial_command": "x", "max_experiment_duration": "1h"}


def assessor_of(data: dict[str, Any]) -> str | None:
    """Return the name of the assessor, and "halving" or "hopeless" for the two of `Auto`."""
    config = ExperimentConfig.from_dict(data).with_plugins(PluginCheck())
    if config.assessor is None:
        assert config.assessor_note == ""
        return None
    assert config.assessor_note
    assert config.assessor.name == "Auto"
    return "hopeless" if config.assessor.class_args.get("hopeless_only") else "halving"


@pytest.mark.parametrize(("more", "stored"), [({}, {}), ({"assessor": "none"}, {"assessor": None})])
def test_a_stored_config_says_whether_none_was_wanted(more: dict[str, Any], stored: dict[str, Any]) -> None:
    config = ExperimentConfig.from_dict({"search_space": {}, "trial_command": "x", **more})
    again = ExperimentConfig.from_canonical(config.canonical())
    for one in (config, config.with_plugins(PluginCheck()), again):
        canonical = one.canonical()
        assert {name: value for name, value in canonical.items() if name == "assessor"} == stored


SPACE = {"x": {"_type": "choice", "_value": [1, 2]}}
LOSSES = [{"name": name, "direction": "minimize"} for name in "ab"]


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        ({}, "halving"),
        ({"tuner": "TPE"}, "halving"),
        ({"tuner": "random"}, "halving"),
        ({"trial_concurrency": 4}, "halving"),
        # trials that are asked for are not halved
        ({"search_space": SPACE, "defaults": {"x": 1}}, "hopeless"),
        ({"search_space": SPACE, "initial_points": [{"x": 1}]}, "hopeless"),
        ({"repeats": 3}, "hopeless"),
        ({"tuner": "TPE", "repeats": 3}, "hopeless"),
        ({"assessor": "none"}, None),
        ({"max_trial_number": 10}, None),
        ({"max_trial_number": 10, "max_experiment_duration": None}, None),
        ({"stop_when": {"expected_gain_below": "noise"}}, None),
        ({"max_experiment_duration": None}, None),
        ({"tuner": "hyperopt"}, None),  # of another package
        ({"tuner": {"class_name": "mine.Tuner", "code_directory": "."}}, None),
        ({"objectives": LOSSES}, None),
        ({"objectives": [{"direction": "minimize", "constraint": "<= 3"}]}, None),
    ],
)
def test_search_that_only_time_ends_stops_its_trials_early(more: dict[str, Any], rules: str | None) -> None:
    assert assessor_of({**TIMED, **more}) == rules


@pytest.mark.parametrize("tuner", ["Batch", "GridSearch", "Hyperband", "ASHA", "BOHB", "DEHB", "PBT", "PB2"])
def test_tuner_that_needs_whole_trials_or_stops_them_itself_has_them(tuner: str) -> None:
    assert assessor_of({**TIMED, "tuner": tuner}) is None


def test_config_of_nni_runs_as_nni_would() -> None:
    assert assessor_of({"searchSpace": {}, "trialCommand": "x", "maxExperimentDuration": "1h"}) is None
    assert assessor_of({**V1, "maxExecDuration": "1h"}) is None
    assert assessor_of(NniConfig("local", **TIMED).json()) is None


@pytest.mark.parametrize(
    ("data", "direction"),
    [
        ({"searchSpace": {}, "trialCommand": "x", "tuner": {"name": "Random"}}, "maximize"),
        (
            {"search_space": {}, "trial_command": "x", "tuner": {"name": "Batch"}, "logLevel": "info"},
            "maximize",
        ),
        ({**V1, "tuner": {"builtinTunerName": "GridSearch"}}, "maximize"),
        (
            NniConfig("local", trial_command="x", search_space={}, tuner={"name": "Random"}).plain(),
            "maximize",
        ),
        (
            {
                "searchSpace": {},
                "trialCommand": "x",
                "tuner": "Random",
                "objectives": [{"name": "a", "direction": "minimize"}],
            },
            "minimize",
        ),
        (
            {**V1, "tuner": {"builtinTunerName": "Random", "classArgs": {"optimize_mode": "minimize"}}},
            "minimize",
        ),
        ({"search_space": {}, "trial_command": "x", "tuner": "Random"}, "minimize"),
    ],
)
def test_direction_that_no_algorithm_has_is_nnis_in_its_form(data: dict[str, Any], direction: str) -> None:
    config = ExperimentConfig.from_dict(data).with_plugins(PluginCheck())
    assert config.objectives[0].direction == direction
    own = ExperimentConfig.from_dict(data).with_plugins(PluginCheck(directions={"tuner": "minimize"}))
    assert own.objectives[0].direction == "minimize"
    assert ExperimentConfig.from_canonical(config.canonical()).objectives == config.objectives


def test_stored_experiment_keeps_what_it_had() -> None:
    for more in ({}, {"assessor": "none"}):
        config = ExperimentConfig.from_dict({**TIMED, **more}).with_plugins(PluginCheck())
        again = ExperimentConfig.from_canonical(config.canonical())
        assert again.with_plugins(PluginCheck()).assessor == config.assessor


@pytest.mark.parametrize(
    ("tuner", "direction"), [("Random", "minimize"), ("Auto", "minimize"), ("GP", "maximize")]
)
def test_default_assessor_does_not_decide_the_direction(tmp_path: Path, tuner: str, direction: str) -> None:
    path = tmp_path / "experiment.yml"
    path.write_text(f"search_space: {{}}\ntrial_command: x\nmax_experiment_duration: 1h\ntuner: {tuner}\n")
    config = load_config(path)
    assert config.objectives[0].direction == direction
    assert "Auto, whose own" not in config.direction_note
