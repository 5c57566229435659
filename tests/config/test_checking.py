"""All checks of one config in turn."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig
from pitchpipe.config.checking import ConfigCheck, validate_fields
from pitchpipe.config.plugins import Checker
from pitchpipe.config.root_fields import ConfigFields

from .refusals import SMALLEST


def examine(data: Any, base: str | None = ".", **options: Any) -> ConfigCheck[ExperimentConfig]:
    return ConfigCheck(ExperimentConfig, data, base, **options)


def problems_of(check: ConfigCheck[ExperimentConfig]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        check.result()
    return [str(problem) for problem in caught.value.problems]


def replying(problems: list[dict[str, Any]], **more: Any) -> Checker:
    """Return a process that replies like a dispatcher with these problems."""
    return Checker([sys.executable, "-c", f"print({json.dumps({'problems': problems, **more})!r})"])


def test_a_config_without_problems_is_the_result() -> None:
    assert examine(SMALLEST).result() == ExperimentConfig.from_dict(SMALLEST)


@pytest.mark.parametrize("data", [None, [], "text"])
def test_data_that_is_not_a_config_is_one_problem_and_is_not_examined_further(data: Any) -> None:
    check = examine(data)
    with Checker(["/no/such/program"]) as checker:
        check.check_plugins(checker)
    assert len(problems_of(check)) == 1


def test_stored_data_needs_none_of_its_files(tmp_path: Path) -> None:
    gone = {**SMALLEST, "trial_code_directory": str(tmp_path / "gone")}
    assert examine(gone, None).result().trial_code_directory == tmp_path / "gone"
    assert "no such directory" in problems_of(examine(gone))[0]


def test_malformed_fields_get_their_defaults_and_the_others_stay() -> None:
    fields = {**SMALLEST, "seed": "x", "trial_concurrency": 4}
    config, findings = validate_fields(ConfigFields, fields, None)
    assert (config.seed, config.trial_concurrency) == (None, 4)
    assert [finding.path for finding in findings] == [("seed",)]


def test_plug_ins_are_asked_for_their_directions() -> None:
    check = examine(SMALLEST)
    with replying([], directions={"tuner": "maximize"}) as checker:
        check.check_plugins(checker)
    assert check.checked.directions == {"tuner": "maximize"}


def test_a_malformed_tuner_is_not_asked() -> None:
    check = examine({**SMALLEST, "tuner": {"name": 3}})
    with Checker(["/no/such/program"]) as checker:
        check.check_plugins(checker)
    assert problems_of(check) == ["tuner.name: must be text, not 3 (put it in quotes)"]


def test_a_plug_in_s_problem_is_added_unless_its_place_has_one() -> None:
    check = examine({**SMALLEST, "tuner": {"name": "X", "class_args": {"optimize_mode": "up"}}})
    found = [
        {"path": ["tuner", "classArgs", "optimize_mode"], "message": "is wrong"},
        {"path": ["tuner", "name"], "message": "is unknown"},
    ]
    with replying(found) as checker:
        check.check_plugins(checker)
    problems = problems_of(check)
    assert [problem.split(":")[0] for problem in problems] == ["tuner.class_args.optimize_mode", "tuner.name"]
    assert problems[1] == "tuner.name: is unknown"
