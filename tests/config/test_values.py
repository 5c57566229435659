"""What the values of fields may be, and what they become."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig, load_config

from ..homeless import leave_home, lose_working_directory
from .refusals import SMALLEST


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


@pytest.mark.parametrize(
    "field",
    [
        *("trial_command", "trial_code_directory", "experiment_working_directory", "storage"),
        *("trial_environment.X", "warm_start.0", "max_trial_duration", "trial_memory_size"),
        *("tuner.class_name", "tuner.code_directory", "max_failures"),
    ],
)
@pytest.mark.parametrize("text", ["a\0b", "half \ud83d"])
def test_text_that_the_system_does_not_take_is_refused(field: str, text: str) -> None:
    name, _, inner = field.partition(".")
    value = [text] if inner == "0" else {inner: text} if inner else text
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig.from_dict({**SMALLEST, name: value})
    assert [str(step) for step in caught.value.problems[0].path] == field.split(".")


@pytest.mark.parametrize("path", ["~/x", "~no-such-user", "~no-such-user/x"])
@pytest.mark.parametrize("field", ["experiment_working_directory", "trial_code_directory", "storage_path"])
def test_path_below_a_home_that_is_missing_is_a_problem_of_its_field(
    field: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_home(monkeypatch)
    ExperimentConfig.from_dict(SMALLEST)
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig.from_dict({**SMALLEST, field: path})
    assert [problem.path for problem in caught.value.problems] == [(field,)]


def test_config_needs_no_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_working_directory(monkeypatch)
    given = ExperimentConfig.from_dict({**SMALLEST, "experiment_working_directory": str(tmp_path)})
    assert given.experiment_working_directory == tmp_path


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
