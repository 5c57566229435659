"""The models' refusals as sentences."""

from __future__ import annotations

from pitchpipe.config.models import ConfigFields
from pitchpipe.config.validation import validate_fields

VALID = {"search_space": {}, "trial_command": "x"}


def test_valid_fields_give_a_model_and_no_findings() -> None:
    config, findings = validate_fields(ConfigFields, {**VALID, "seed": 3}, {})
    assert (config.seed, config.trial_command, findings) == (3, "x", [])


def test_malformed_fields_get_their_defaults_and_the_others_stay() -> None:
    config, findings = validate_fields(ConfigFields, {**VALID, "seed": "x", "trial_concurrency": 4}, {})
    assert (config.seed, config.trial_concurrency) == (None, 4)
    assert [finding.path for finding in findings] == [("seed",)]
