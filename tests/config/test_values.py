"""What the values of fields may be, and what they become."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.config import ConfigError, ExperimentConfig, load_config
from pitchpipe.config.values import UnitError, parse_duration, parse_gpu_indices, parse_memory

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


ANYTHING = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers())
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("10m", 600),
        ("1.5h", 5400),
        ("2D", 172800),
        (" 5 S ", 5),
        (".5h", 1800),
        (90, 90),
        (0.5, 0.5),
    ],
)
def test_duration_in_each_unit(text: Any, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value", ["", "h", "1w", "1h30m", "-1s", -1, True, None, [], math.inf, math.nan, 10**400, "١s"]
)
def test_duration_that_is_none(value: Any) -> None:
    with pytest.raises(UnitError):
        parse_duration(value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4gb", 4 * 2**30),
        ("1 TB", 2**40),
        ("1.5kb", 1536),
        ("0.3kb", 308),
        ("7b", 7),
        ("2MB", 2**21),
        (4096, 4096),
    ],
)
def test_memory_in_each_unit(text: Any, size: int) -> None:
    assert parse_memory(text) == size
    assert isinstance(parse_memory(text), int)


@pytest.mark.parametrize("value", ["4g", "gb", -1, 1.5, True, None, "-1gb", "4gb 2mb"])
def test_memory_that_is_none(value: Any) -> None:
    with pytest.raises(UnitError):
        parse_memory(value)


@pytest.mark.parametrize(("value", "indices"), [(3, (3,)), ("0,1", (0, 1)), ("2", (2,)), ([1, 0], (1, 0))])
def test_gpu_indices_in_each_form(value: Any, indices: tuple[int, ...]) -> None:
    assert parse_gpu_indices(value) == indices


@pytest.mark.parametrize("value", ["", "a", "0,,1", -1, [0, 0], "0,0", [], [True], 1.0, ["0"], "0,-2"])
def test_gpu_indices_that_are_none(value: Any) -> None:
    with pytest.raises(UnitError):
        parse_gpu_indices(value)


@given(ANYTHING)
def test_any_value_is_parsed_or_refused(value: Any) -> None:
    for parse in (parse_duration, parse_memory, parse_gpu_indices):
        try:
            result = parse(value)
        except UnitError as error:
            result = str(error)
        assert result or result == 0
