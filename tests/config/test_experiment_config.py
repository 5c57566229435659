"""load_config, from_dict and the canonical form: whole configs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pitchpipe.config import ConfigError, ExperimentConfig, LocalConfig, load_config
from pitchpipe.config.root_fields import ConfigFields
from pitchpipe.config.sections import AlgorithmConfig
from pitchpipe.protocol import camel_case

from .refusals import SMALLEST

SPACE = SMALLEST["search_space"]


def write(folder: Path, text: str, name: str = "experiment.yml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_smallest_config_is_read(tmp_path: Path) -> None:
    text = "search_space: {lr: {_type: loguniform, _value: [1e-5, 1e-1]}}\ntrial_command: python train.py\n"
    text += "trial_concurrency: 2\nmax_trial_number: 20\n"
    config = load_config(write(tmp_path, text), check_plugins=False)
    assert config.search_space == SPACE
    assert (config.trial_concurrency, config.max_trial_number) == (2, 20)
    assert config.trial_code_directory == Path(os.path.realpath(tmp_path))
    assert (config.tuner, config.assessor) == (AlgorithmConfig(name="Auto"), None)
    assert [(o.name, o.direction) for o in config.objectives] == [("default", "minimize")]


def test_debug_sets_the_log_level_unless_there_is_one() -> None:
    assert ExperimentConfig.from_dict({**SMALLEST, "debug": True}).log_level == "debug"
    assert ExperimentConfig.from_dict({**SMALLEST, "debug": True, "log_level": "error"}).log_level == "error"


def test_search_space_file_fills_the_search_space(tmp_path: Path) -> None:
    write(tmp_path, json.dumps(SPACE), "space.json")
    main = write(tmp_path, "trial_command: x\nsearch_space_file: space.json\n")
    config = load_config(main, check_plugins=False)
    assert config.search_space == SPACE
    assert config.search_space_file == Path(os.path.realpath(tmp_path)) / "space.json"
    assert config.canonical()["searchSpace"] == SPACE


def test_config_file_that_is_absent_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.yml: cannot be read: No such file or directory"):
        load_config(tmp_path / "no.yml")


def test_python_data_may_hold_sections_tuples_numpy_numbers_and_paths(tmp_path: Path) -> None:
    data = {
        "search_space": {"lr": {"_type": "uniform", "_value": (np.float64(0), np.int64(1))}},
        "trial_code_directory": tmp_path,
        "tuner": AlgorithmConfig(name="TPE", class_args={"n": np.int32(3)}),
        "training_service": LocalConfig(platform="local"),
    }
    config = ExperimentConfig.from_dict(data, needs_command=False)
    assert json.loads(json.dumps(config.canonical()))["searchSpace"]["lr"]["_value"] == [0.0, 1]
    assert (config.tuner.class_args, config.trial_command) == ({"n": 3}, None)


def test_config_does_not_share_the_caller_s_data() -> None:
    arguments = {"sizes": [1]}
    config = ExperimentConfig.from_dict({**SMALLEST, "tuner": {"name": "TPE", "class_args": arguments}})
    arguments["sizes"].append(2)
    config.canonical()["tuner"]["classArgs"]["sizes"].append(3)
    assert config.tuner.class_args == {"sizes": [1]}


def test_config_is_frozen() -> None:
    config = ExperimentConfig.from_dict(SMALLEST)
    with pytest.raises(ValidationError):
        config.trial_concurrency = 3
    assert pickle.loads(pickle.dumps(config)) == config


def test_ignored_field_is_named_as_it_is_written_with_its_line(tmp_path: Path) -> None:
    main = write(tmp_path, "searchSpace: {}\ntrialCommand: x\nmaxTrialNumber: 3\nnniManagerIP: 10.0.0.1\n")
    assert load_config(main, check_plugins=False).warnings == ["nniManagerIP (line 4) has no effect"]


def test_canonical_form_is_camel_case_without_unset_fields() -> None:
    canonical = ExperimentConfig.from_dict({**SMALLEST, "max_trial_duration": "1m"}).canonical()
    assert canonical["maxTrialDuration"] == 60.0
    assert canonical["trialCommand"] == "python train.py"
    assert canonical["searchSpace"] == SPACE
    assert canonical["tuner"] == {"name": "Auto", "classArgs": {}}
    assert None not in canonical.values()
    assert not any("_" in key for key in canonical)


def test_canonical_form_keeps_null_inside_values_passed_on() -> None:
    data = {**SMALLEST, "tuner": {"name": "TPE", "class_args": {"seed_": None}}}
    config = ExperimentConfig.from_dict(data)
    assert config.canonical()["tuner"]["classArgs"] == {"seed_": None}
    assert ExperimentConfig.from_canonical(config.canonical()) == config


def test_canonical_form_is_read_back_when_its_files_are_gone(tmp_path: Path) -> None:
    write(tmp_path, json.dumps(SPACE), "space.json")
    (tmp_path / "code").mkdir()
    data = {"trial_command": "x", "search_space_file": "space.json", "trial_code_directory": "code"}
    config = ExperimentConfig.from_dict(data, tmp_path)
    (tmp_path / "space.json").unlink()
    (tmp_path / "code").rmdir()
    assert ExperimentConfig.from_canonical(config.canonical()) == config


NAMES = st.text("abcXYZ_09", min_size=1, max_size=6)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
AMOUNTS = st.floats(0, 1e6) | st.integers(0, 1000)
SERVICES = st.one_of(
    st.fixed_dictionaries(
        {"platform": st.just("local")},
        optional={"gpu_indices": st.sampled_from([0, "0,1", [2, 1]]), "use_active_gpu": st.booleans()},
    ),
    st.fixed_dictionaries(
        {"platform": st.just("ray")},
        optional={
            "address": st.sampled_from(["auto", "10.0.0.1:6379"]),
            "idle_timeout": AMOUNTS,
            "runtime_env": st.dictionaries(NAMES, JSON_VALUES, max_size=2),
        },
    ),
)
TWO_OBJECTIVES = [{"name": "default", "direction": "minimize"}, {"name": "b", "direction": "maximize"}]
CONFIGS = st.fixed_dictionaries(
    {"search_space": st.sampled_from([{}, SPACE]), "trial_command": st.text("abc $", min_size=1)},
    optional={
        "experiment_name": st.text(max_size=5),
        "objectives": st.sampled_from([[{"direction": "maximize"}], TWO_OBJECTIVES]),
        "trial_memory_size": st.integers(1, 2**40) | st.sampled_from(["1.5gb", "7kb"]),
        "trial_gpu_number": st.sampled_from([0, 0.5, 3]),
        "trial_cpu_number": st.floats(0.1, 64),
        "trial_resources": st.dictionaries(NAMES, AMOUNTS, max_size=2),
        "trial_environment": st.dictionaries(NAMES, st.text("abc", max_size=3) | st.integers(), max_size=2),
        "max_experiment_duration": st.floats(0.01, 1e6) | st.sampled_from(["1.5h", "2d"]),
        "kill_grace": AMOUNTS,
        "seed": st.none() | st.integers(0, 2**70),
        "debug": st.booleans(),
        "nni_manager_ip": st.just("10.0.0.1"),
        "durability": st.sampled_from(["process", "power"]),
        "tuner": st.fixed_dictionaries(
            {"name": st.just("X")}, optional={"class_args": st.dictionaries(NAMES, JSON_VALUES, max_size=3)}
        ),
        "assessor": st.just({"class_name": "m.C", "code_directory": "."}),
        "training_service": SERVICES,
    },
)


@given(CONFIGS)
def test_canonical_form_of_any_config_is_json_and_is_read_back_equal(data: dict[str, Any]) -> None:
    config = ExperimentConfig.from_dict(data)
    canonical = json.loads(json.dumps(config.canonical()))
    again = ExperimentConfig.from_canonical(canonical)
    assert again == config
    assert again.canonical() == canonical


@given(
    CONFIGS, st.sampled_from([camel_case, str.upper, lambda name: name.replace("_", "").upper(), "_".join])
)
def test_any_spelling_of_field_names_means_the_same(data: dict[str, Any], spell: Any) -> None:
    respelled = {spell(name): value for name, value in data.items()}
    for section in ("tuner", "assessor", "training_service"):
        if section in data:
            respelled[spell(section)] = {spell(name): value for name, value in data[section].items()}
    assert dict(ExperimentConfig.from_dict(respelled)) == dict(ExperimentConfig.from_dict(data))


@settings(max_examples=300)
@given(
    st.dictionaries(st.sampled_from([*ConfigFields.model_fields, "advisor"]) | NAMES, JSON_VALUES, max_size=6)
)
def test_any_data_gives_a_config_or_its_problems(data: dict[str, Any]) -> None:
    try:
        config = ExperimentConfig.from_dict(data)
    except ConfigError as error:
        shown = [str(problem) for problem in error.problems]
    else:
        shown = ["none"]
        assert ExperimentConfig.from_canonical(config.canonical()) == config
    assert shown
    assert all(shown)


def test_reading_a_config_imports_no_plug_in_and_no_ray(tmp_path: Path) -> None:
    path = write(tmp_path, "search_space: {}\ntrial_command: x\n")
    code = (
        "import sys; from pitchpipe.config import load_config; "
        f"load_config({str(path)!r}, check_plugins=False); "
        "print([m for m in sys.modules if m in ('ray', 'scipy', 'pitchpipe.tuners', 'pitchpipe.assessors')])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
