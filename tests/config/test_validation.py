"""The models' refusals as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config.models import ConfigFields
from pitchpipe.config.problems import Finding
from pitchpipe.config.validation import validate_fields

VALID = {"search_space": {}, "trial_command": "x"}


def findings_of(**values: Any) -> list[Finding]:
    return validate_fields(ConfigFields, {**VALID, **values}, {})[1]


def test_valid_fields_give_a_model_and_no_findings() -> None:
    config, findings = validate_fields(ConfigFields, {**VALID, "seed": 3}, {})
    assert (config.seed, config.trial_command, findings) == (3, "x", [])


def test_malformed_fields_get_their_defaults_and_the_others_stay() -> None:
    config, findings = validate_fields(ConfigFields, {**VALID, "seed": "x", "trial_concurrency": 4}, {})
    assert (config.seed, config.trial_concurrency) == (None, 4)
    assert [finding.path for finding in findings] == [("seed",)]


@pytest.mark.parametrize(
    ("values", "path", "message", "hint"),
    [
        ({"seed": "3"}, ("seed",), 'must be an integer, not "3"', "write 3 without quotes"),
        ({"seed": "x"}, ("seed",), 'must be an integer, not "x"', ""),
        ({"seed": 1.5}, ("seed",), "must be an integer, not 1.5", ""),
        (
            {"trial_cpu_number": "2"},
            ("trial_cpu_number",),
            'must be a number, not "2"',
            "write 2 without quotes",
        ),
        ({"trial_command": 3}, ("trial_command",), "must be text, not 3", "put it in quotes"),
        ({"trial_command": [3]}, ("trial_command",), "must be text, not [3]", ""),
        ({"trial_command": ""}, ("trial_command",), "must not be empty", ""),
        ({"debug": "on"}, ("debug",), 'must be true or false, not "on"', "write true"),
        ({"debug": "No"}, ("debug",), 'must be true or false, not "No"', "write false"),
        ({"debug": "maybe"}, ("debug",), 'must be true or false, not "maybe"', ""),
        ({"search_space": "x"}, ("search_space",), 'must be a mapping, not "x"', ""),
        ({"constraints": 3}, ("constraints",), "must be a list, not 3", ""),
        ({"repeats": 5}, ("repeats",), "must be a mapping, not 5", "such as {count: 5}"),
        (
            {"warm_start": "a.csv"},
            ("warm_start",),
            'must be a list, not "a.csv"',
            "such as [k3x9a2bq, earlier.csv]",
        ),
        ({"seed": -1}, ("seed",), "must be at least 0, not -1", ""),
        ({"trial_concurrency": 0}, ("trial_concurrency",), "must be greater than 0, not 0", ""),
        (
            {"durability": "powr"},
            ("durability",),
            'must be process or power, not "powr"',
            "did you mean power?",
        ),
        ({"training_service": "local"}, ("training_service",), None, "platform: local"),
        (
            {"kill_grace": "5"},
            ("kill_grace",),
            '"5" has no unit',
            "write 5 without quotes for seconds, or 5s",
        ),
    ],
)
def test_refusal_is_a_sentence_with_the_value_and_a_hint(
    values: dict[str, Any], path: tuple[str, ...], message: str | None, hint: str
) -> None:
    (finding,) = findings_of(**values)
    assert (finding.path, finding.hint) == (path, hint)
    assert message is None or finding.message == message


def test_a_field_of_the_training_service_has_its_path_without_the_platform() -> None:
    (finding,) = findings_of(training_service={"platform": "local", "max_trial_number_per_gpu": 0})
    assert finding.path == ("training_service", "max_trial_number_per_gpu")


def test_a_wrong_key_of_a_mapping_has_the_path_of_the_key() -> None:
    (finding,) = findings_of(trial_environment={"A=B": "x"})
    assert finding.path == ("trial_environment", "A=B")
