"""The JSON schema of experiment.yml: it takes what the reader takes, and marks what editors should mark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from pitchpipe.config import config_schema
from pitchpipe.config.root_fields import ConfigFields
from pitchpipe.protocol import camel_case

ROOT = Path(__file__).resolve().parents[2]
SPACE = {"lr": {"_type": "loguniform", "_value": [1e-4, 1]}, "fixed": 3}
BASE = {"search_space": SPACE, "trial_command": "python train.py {args}"}
EXAMPLES = sorted((ROOT / "examples").glob("*/experiment.yml"))


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(json.dumps(config_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_field_is_offered_with_its_meaning() -> None:
    fields = config_schema()["properties"]
    assert set(fields) == set(ConfigFields.model_fields)
    assert [name for name, field in fields.items() if not field.get("description")] == []
    assert not any("](" in field["description"] for field in fields.values())


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_configs_of_the_examples_are_valid(file: Path, validator: Any) -> None:
    assert [error.message for error in validator.iter_errors(YAML(typ="safe").load(file))] == []


@pytest.mark.parametrize(
    "more",
    [
        {"max_trial_duration": "1.5h", "kill_grace": 3, "trial_memory_size": "4gb"},
        {"tuner": "TPE", "assessor": "none", "repeats": 5},
        {"tuner": {"name": "TPE", "class_args": {"a": [1]}}, "assessor": {"name": "Medianstop"}},
        {"advisor": {"name": "BOHB"}},
        {"priors": {"lr": 0.1, "solver": {"centre": "sgd", "confidence": "high"}}},
        {"trainingService": {"platform": "local", "useActiveGpu": True, "trial_gpu_number": 1}},
        {"training_service": {"platform": "ray", "address": "auto", "idle_timeout": "5m"}},
        {"trialConcurrency": 3, "maxTrialNumber": 10, "tunerGpuIndices": "0,1"},
        {"max_failures": {"INFRA": 3}, "trial_environment": {"N": 3, "NAME": "x"}},
        {"trackers": {"wandb": {"project": "digits"}}, "warm_start": ["k3x9a2bq"]},
        {"objectives": [{"name": "ms", "constraint": "<= 20"}, {"name": "acc", "direction": "maximize"}]},
        {"stop_when": {"expected_gain_below": "noise"}},
    ],
)
def test_what_the_reader_takes_is_valid(more: dict[str, Any], validator: Any) -> None:
    assert [error.message for error in validator.iter_errors({**BASE, **more})] == []


@pytest.mark.parametrize(
    "more",
    [
        {"max_trial_numbr": 3},
        {"max_trial_number": 0},
        {"max_trial_number": "many"},
        {"trial_concurrency": 1.5},
        {"objectives": [{"direction": "up"}]},
        {"training_service": {"platform": "moon"}},
        {"search_space": {"lr": {"_type": "loguniformly", "_value": [0, 1]}}},
        {"checkpoint": {"rank_by": "luck"}},
        {"repeats": 0},
    ],
)
def test_what_is_wrong_is_marked(more: dict[str, Any], validator: Any) -> None:
    assert list(validator.iter_errors({**BASE, **more}))


def test_other_spelling_of_each_field_is_taken() -> None:
    patterns = config_schema()["patternProperties"]
    names = {camel_case(name) for name in ConfigFields.model_fields if camel_case(name) != name}
    assert {f"^{name}$" for name in names} <= set(patterns)
