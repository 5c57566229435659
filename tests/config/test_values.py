"""What the values of fields may be, and what they become."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig, load_config

SMALLEST: dict[str, Any] = {
    "search_space": {"lr": {"_type": "loguniform", "_value": [1e-5, 0.1]}},
    "trial_command": "python train.py",
}


def problems_of(data: Any, **options: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig.from_dict(data, **options)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("trial_concurrency", 0, "must be greater than 0, not 0"),
        ("trial_concurrency", True, "must be an integer, not true"),
        ("trial_concurrency", 1.5, "must be an integer, not 1.5"),
        ("max_trial_number", 0, "must be greater than 0, not 0"),
        ("max_trial_duration", 0, "must be more than 0 seconds, not 0"),
        ("max_experiment_duration", "0s", "must be more than 0 seconds, not 0"),
        ("trial_gpu_number", -1, "must be at least 0, not -1"),
        ("trial_gpu_number", 1.5, "must be a whole number or less than 1, not 1.5"),
        ("trial_cpu_number", 0, "must be greater than 0, not 0"),
        ("trial_cpu_number", float("inf"), "must be a finite number, not Infinity"),
        ("trial_memory_size", "4xb", 'must be a memory size, not "4xb"'),
        ("trial_command", "", "must not be empty"),
        ("trial_command", 3, "must be text, not 3"),
        ("trial_command", None, "required field is missing"),
        ("trial_code_directory", 3, "must be a path, not 3"),
        ("experiment_type", "nas", 'must be hpo, not "nas"'),
        ("use_annotation", True, "annotations are not supported"),
        ("log_level", "loud", "must be fatal, error, warning, info, debug or trace, not"),
        ("durability", "proces", "did you mean process?"),
        ("seed", "1", 'must be an integer, not "1"'),
        ("max_trial_duration", "1 hour", "did you mean 1h?"),
        ("trial_memory_size", "4gib", "did you mean 4gb?"),
        ("training_service", "local", "(platform: local)"),
        ("constraints", "lr < 1", "must be a list"),
        ("constraints", ["lr <"], "constraints[0]: not an expression"),
        ("constraints", ["lr < la"], "constraints[0]: "),
        ("trial_environment", {"A=": "x"}, "is not the name of an environment variable"),
        ("trial_environment", {"A": True}, "trial_environment.A: must be text, not true"),
        ("trial_resources", {"tpu": -1}, "trial_resources.tpu: must be at least 0"),
        ("search_space", [1], "search_space: must be a mapping, not [1]"),
        ("search_space", None, "search_space: required field is missing (or search_space_file)"),
        ("tuner_gpu_indices", "a", "must be GPU indices"),
        ("objectives", [], "objectives: must not be empty"),
    ],
)
def test_wrong_value_is_one_problem(field: str, value: Any, message: str) -> None:
    (problem,) = problems_of({**SMALLEST, field: value})
    assert problem.startswith(field)
    assert message in problem


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("max_trial_duration", "1.5h", 5400.0),
        ("trial_memory_size", "4gb", 4 * 2**30),
        ("trial_gpu_number", 0.25, 0.25),
        ("trial_gpu_number", 2, 2.0),
        ("trial_gpu_number", 0, 0.0),
        ("trial_environment", {"OMP_NUM_THREADS": 1, "X": "y"}, {"OMP_NUM_THREADS": "1", "X": "y"}),
        ("trial_resources", {"tpu": 1}, {"tpu": 1.0}),
        ("log_level", "CRITICAL", "fatal"),
        ("debug", True, True),
        ("tuner_gpu_indices", "0,1", (0, 1)),
        ("constraints", ["lr < 1"], ("lr < 1",)),
        ("kill_grace", 0, 0.0),
        ("max_identical_failures", 0, 0),
        ("seed", None, None),
    ],
)
def test_value_is_what_it_means(field: str, value: Any, expected: Any) -> None:
    assert getattr(ExperimentConfig.from_dict({**SMALLEST, field: value}), field) == expected


def test_relative_paths_start_from_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "code").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    text = "trial_command: x\nsearch_space: {}\ntrial_code_directory: code\n"
    text += "experiment_working_directory: ~/all\n"
    (tmp_path / "experiment.yml").write_text(text)
    config = load_config(tmp_path / "experiment.yml", check_plugins=False)
    assert config.trial_code_directory == Path(os.path.realpath(tmp_path)) / "code"
    assert config.experiment_working_directory == Path(os.path.realpath(tmp_path)) / "home" / "all"


def test_working_directory_that_is_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (problem,) = problems_of({**SMALLEST, "experiment_working_directory": "file"}, base_directory=tmp_path)
    assert "is not a directory" in problem
