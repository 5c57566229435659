"""Commands that no trial could run as they are meant, found before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager import faults_at_start

SPACE: dict[str, Any] = {
    "model": {"_type": "choice", "_value": ["plain", "a b"]},
    "layer": {
        "_type": "choice",
        "_value": [{"_name": "it's", "size": {"_type": "randint", "_value": [1, 9]}}],
    },
}


def faults(command: str, space: dict[str, Any] = SPACE, **fields: Any) -> list[str]:
    data = {"search_space": space, "trial_command": command, "max_trial_number": 1, **fields}
    local = {"training_service": {"platform": "local"}, "tuner": {"name": "Random"}}
    return [f"{one.message}|{one.hint}" for one in faults_at_start(ExperimentConfig.from_dict(local | data))]


@pytest.mark.parametrize(
    ("command", "start", "hint"),
    [
        (
            "true `echo {model}`",
            "{model} at character 12 of the command is inside backticks",
            "write $( ) in place of",
        ),
        (
            "bash -c 'true {layer}'",
            "{layer} at character 15 of the command is in code",
            "pass it after the code",
        ),
        ("true '{args}'", "{args} at character 7 of the command is in quotes", "write {args} without them"),
        ("true a\\{size}", "{size} at character 8 of the command follows a backslash", "write \\\\{size}"),
    ],
)
@pytest.mark.parametrize("service", [{"platform": "local"}, {"platform": "ray", "address": "10.0.0.1:6379"}])
def test_a_placeholder_that_cannot_take_a_value(
    command: str, start: str, hint: str, service: dict[str, str]
) -> None:
    (found,) = faults(command, training_service=service)
    assert found.startswith(start)
    assert found.split("|")[1].startswith(hint)


@pytest.mark.parametrize(
    "command", ["true '{model}' \"{layer}\" {args}", 'bash -c "exit $(({size}))"', "true"]
)
def test_what_every_value_fits_in(command: str) -> None:
    assert faults(command) == []


def test_the_sets_of_a_batch_and_spaces_that_only_a_tuner_reads() -> None:
    batch = {"runs": {"_type": "choice", "_value": [{"m": "plain"}, {"m": "a b"}]}}
    assert len(faults("eval true {m}", batch, tuner={"name": "Batch"})) == 1
    assert faults("eval true {m}", {"m": {"_type": "randint", "_value": [1, 2]}}) == []
