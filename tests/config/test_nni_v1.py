"""Configs of NNI v1: what becomes of each field, and where problems are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.compat.nni.config_forms import draft_of
from pitchpipe.config import ConfigError, ExperimentConfig, LocalConfig, load_config

from .refusals import V1

EVERY_FIELD = """\
authorName: default
experimentName: mnist
trialConcurrency: 2
maxExecDuration: 1h
maxTrialNum: 10
trainingServicePlatform: local
searchSpacePath: space.json
useAnnotation: false
multiPhase: false
multiThread: true
logDir: experiments
logLevel: warning
versionCheck:
tuner:
  builtinTunerName: TPE
  classArgs: {optimize_mode: maximize}
  gpuIndices: "0,1"
assessor:
  codeDir: code
  classFileName: mine.py
  className: Mine
  classArgs: {epoch_num: 20}
trial:
  command: python train.py
  codeDir: code
  gpuNum: 1
localConfig:
  gpuIndices: 0,1
  maxTrialNumPerGpu: 2
  useActiveGpu: true
"""


def test_every_field_has_its_place(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "space.json").write_text('{"x": {"_type": "uniform", "_value": [0, 1]}}')
    path = tmp_path / "config.yml"
    path.write_text(EVERY_FIELD)
    config = load_config(path, check_plugins=False)
    assert config.experiment_name == "mnist"
    assert (config.trial_concurrency, config.max_trial_number) == (2, 10)
    assert config.max_experiment_duration == 3600.0
    assert config.search_space == {"x": {"_type": "uniform", "_value": [0, 1]}}
    assert (config.experiment_working_directory, config.log_level) == (tmp_path / "experiments", "warning")
    assert (config.tuner.name, config.tuner_gpu_indices) == ("TPE", (0, 1))
    assert config.objectives[0].direction == "maximize"
    assert config.assessor is not None
    assert (config.assessor.class_name, config.assessor.class_args) == ("mine.Mine", {"epoch_num": 20})
    assert config.assessor.code_directory == tmp_path / "code"
    assert (config.trial_command, config.trial_gpu_number) == ("python train.py", 1)
    assert config.trial_code_directory == tmp_path / "code"
    service = config.training_service
    assert isinstance(service, LocalConfig)
    assert (service.gpu_indices, service.max_trial_number_per_gpu) == ((0, 1), 2)
    assert service.use_active_gpu
    assert config.warnings == [
        "multiThread of NNI v1 has no effect: a tuner is called by one thread at a time"
    ]


V1_GPUS = """\
trainingServicePlatform: local
searchSpace: {}
maxTrialNum: 1
trial: {command: "true"%s}
localConfig: {maxTrialNumPerGpu: %d}
"""
V3_GPUS = """\
searchSpace: {}
maxTrialNumber: 1
trialCommand: "true"%s
trainingService: {platform: local, maxTrialNumberPerGpu: %d, useActiveGpu: true, gpuIndices: [0]}
"""


@pytest.mark.parametrize(
    ("per_gpu", "gpus", "count"), [(2, None, 1), (2, 0, 1), (2, 1, 0), (2, 2, 0), (1, 0, 0)]
)
@pytest.mark.parametrize(
    ("text", "gpu_number", "name"),
    [
        (V1_GPUS, ", gpuNum: %d", "localConfig.maxTrialNumPerGpu"),
        (V3_GPUS, "\ntrialGpuNumber: %d", "trainingService.maxTrialNumberPerGpu"),
    ],
    ids=["v1", "v3"],
)
def test_trials_for_each_gpu_have_no_effect_without_gpus(
    tmp_path: Path, text: str, gpu_number: str, name: str, per_gpu: int, gpus: int | None, count: int
) -> None:
    path = tmp_path / "config.yml"
    path.write_text(text % ("" if gpus is None else gpu_number % gpus, per_gpu))
    config = load_config(path, check_plugins=False)
    assert isinstance(config.training_service, LocalConfig)
    assert config.training_service.max_trial_number_per_gpu == per_gpu
    assert len([warning for warning in config.warnings if warning.startswith(name)]) == count


@pytest.mark.parametrize(
    ("section", "name"),
    [({"advisor": {"builtinAdvisorName": "Hyperband"}}, "Hyperband"), ({"tuner": "Random"}, "Random")],
)
def test_algorithm_may_be_an_advisor_or_a_name(section: Any, name: str) -> None:
    assert ExperimentConfig.from_dict({**V1, **section}).tuner.name == name


def test_platform_that_is_not_supported_hides_no_unknown_tuner(tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    path.write_text(
        "trainingServicePlatform: pai\nsearchSpace: {}\ntuner:\n  builtinTunerName: TPEE\n"
        "trial: {command: python3 train.py, codeDir: /remote, cpuNum: 1}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    first, second = map(str, caught.value.problems)
    assert f'{path}:1:26: trainingServicePlatform: platform "pai" is not supported' in first
    assert f"{path}:4:21: tuner.builtinTunerName: " in second


def test_ray_can_be_named_in_this_form() -> None:
    data = {**V1, "trainingServicePlatform": "ray", "rayConfig": {"address": "head:6379"}}
    service = ExperimentConfig.from_dict(data).training_service
    assert service.canonical()["address"] == "head:6379"


def test_hybrid_mode_runs_on_this_machine() -> None:
    platforms = {"hybridConfig": {"trainingServicePlatforms": ["remote", "local"]}}
    data = {**V1, "trainingServicePlatform": "hybrid", **platforms, "localConfig": {"useActiveGpu": True}}
    service = ExperimentConfig.from_dict(data).training_service
    assert isinstance(service, LocalConfig)
    assert service.use_active_gpu is True


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
KEYS = ["trial", "tuner", "assessor", "advisor", "localConfig", "maxTrialNum", "multiPhase", "machineList"]
hybrid = st.fixed_dictionaries({"trainingServicePlatforms": st.just(["local", 3]) | values}) | values


@given(
    st.sampled_from(["local", "hybrid"]),
    st.dictionaries(st.sampled_from([*KEYS, "trainingService", "codeDir"]), values, max_size=4),
    hybrid,
)
def test_draft_of_any_v1_data_does_not_raise(platform: str, data: dict[str, Any], platforms: Any) -> None:
    draft_of({"trainingServicePlatform": platform, **data, "hybridConfig": platforms})
