"""A config that names no assessor gets `Auto` where only time limits the search, unless it is one of NNI's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig, load_config
from pitchpipe.config.plugins import PluginCheck
from pitchpipe.nni_config import ExperimentConfig as NniConfig

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
    for one in (
        config,
        config.with_plugins(PluginCheck()),
        ExperimentConfig.from_canonical(config.canonical()),
    ):
        canonical = one.canonical()
        assert {name: value for name, value in canonical.items() if name == "assessor"} == stored


@pytest.mark.parametrize("more", [{}, {"tuner": "TPE"}, {"tuner": "random"}, {"trial_concurrency": 4}])
def test_search_that_only_time_ends_halves_its_trials(more: dict[str, Any]) -> None:
    assert assessor_of({**TIMED, **more}) == "halving"


@pytest.mark.parametrize(
    "more",
    [{"defaults": {"x": 1}}, {"initial_points": [{"x": 1}]}, {"repeats": 3}, {"tuner": "TPE", "repeats": 3}],
)
def test_trials_that_are_asked_for_are_not_halved(more: dict[str, Any]) -> None:
    space = {"x": {"_type": "choice", "_value": [1, 2]}}
    assert assessor_of({**TIMED, "search_space": space, **more}) == "hopeless"


@pytest.mark.parametrize(
    "more",
    [
        {"assessor": "none"},
        {"max_trial_number": 10},
        {"max_trial_number": 10, "max_experiment_duration": None},
        {"stop_when": {"expected_gain_below": "noise"}},
        {"max_experiment_duration": None},
        *(
            {"tuner": name}
            for name in ("Batch", "GridSearch", "Hyperband", "ASHA", "BOHB", "DEHB", "PBT", "PB2")
        ),
        {"tuner": "hyperopt"},  # of another package
        {"tuner": {"class_name": "mine.Tuner", "code_directory": "."}},
        {"objectives": [{"name": "a", "direction": "minimize"}, {"name": "b", "direction": "minimize"}]},
        {"objectives": [{"direction": "minimize", "constraint": "<= 3"}]},
    ],
)
def test_any_other_search_runs_every_trial_to_its_end(more: dict[str, Any]) -> None:
    assert assessor_of({**TIMED, **more}) is None


def test_config_of_nni_runs_as_nni_would() -> None:
    v2 = {"searchSpace": {}, "trialCommand": "x", "maxExperimentDuration": "1h"}
    assert assessor_of(v2) is None
    v1 = {
        "maxExecDuration": "1h",
        "trainingServicePlatform": "local",
        "trial": {"command": "x", "codeDir": "."},
    }
    assert assessor_of({**v1, "searchSpace": {}}) is None
    assert assessor_of(NniConfig("local", **TIMED).json()) is None


def test_stored_experiment_keeps_what_it_had() -> None:
    for more in ({}, {"assessor": "none"}):
        config = ExperimentConfig.from_dict({**TIMED, **more}).with_plugins(PluginCheck())
        assert (
            ExperimentConfig.from_canonical(config.canonical()).with_plugins(PluginCheck()).assessor
            == config.assessor
        )


@pytest.mark.parametrize(
    ("tuner", "direction"), [("Random", "minimize"), ("Auto", "minimize"), ("GP", "maximize")]
)
def test_default_assessor_does_not_decide_the_direction(tmp_path: Path, tuner: str, direction: str) -> None:
    path = tmp_path / "experiment.yml"
    path.write_text(
        f"search_space: {{x: {{_type: uniform, _value: [0, 1]}}}}\ntrial_command: x\nmax_experiment_duration: 1h\n"
        f"tuner: {tuner}\n"
    )
    config = load_config(path)
    assert config.objectives[0].direction == direction
    assert "Auto, whose own" not in config.direction_note
