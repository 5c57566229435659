"""What users read about a config: each input is a line of YAML that changes the smallest config."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from syrupy.assertion import SnapshotAssertion

from pitchpipe.config import ConfigError, ExperimentConfig, load_config
from pitchpipe.config.plugins import PluginCheck
from pitchpipe.config.source import parse_source

from ..sentences import SentencesFile, answered
from .refusals import LAYERED, OVERRIDDEN, SMALLEST, V1, problems_of

HYBRID_V1 = {
    **V1,
    "trainingServicePlatform": "hybrid",
    "maxTrialNum": 1,
    "hybridConfig": {"trainingServicePlatforms": ["remote", "local"]},
    "machineList": [{"ip": "10.1.1.1", "username": "ada", "passwd": "secret"}],
    "localConfig": {"useActiveGpu": True},
}
LAYERS = {**SMALLEST, "search_space": LAYERED}
POINTS = {**LAYERS, "defaults": {"lr": 0.01, "units": 8, "layer": {"_name": "conv", "kernel": 3}}}


def changed(base: dict[str, Any], line: str) -> dict[str, Any]:
    return {**base, **parse_source(line, "line.yml").data}


def problems_of_fields(base: dict[str, Any], line: str) -> list[str]:
    return problems_of(changed(base, line))


def warnings_of_fields(base: dict[str, Any], line: str) -> list[str]:
    return ExperimentConfig.from_dict(changed(base, line)).warnings


def notes_of_start(line: str) -> list[str]:
    """Return what the start of an experiment says; `own` are the directions of its algorithms."""
    data = changed(SMALLEST, line)
    checked = PluginCheck(directions=data.pop("own", {}))
    config = ExperimentConfig.from_dict(data).with_plugins(checked)
    return [note for note in (config.direction_note, config.repeats_note, config.assessor_note) if note]


def problems_of_data(line: str) -> list[str]:
    return problems_of(parse_source(f"data: {line}", "line.yml").data["data"])


def problems_of_syntax(name: str, line: str) -> list[str]:
    try:
        return [str(problem) for problem in parse_source(json.loads(line), name).problems]
    except ConfigError as error:
        return [str(problem) for problem in error.problems]


def problems_of_file(line: str) -> list[str]:
    Path("e.yml").write_text(json.loads(line))
    return problems_of_config_file()


def problems_of_space(line: str) -> list[str]:
    Path("e.yml").write_text("search_space_file: space.json\nconstraints: [lr <]\n")
    Path("space.json").write_text(json.loads(line))
    return problems_of_config_file()


def problems_of_override(line: str) -> list[str]:
    Path("e.yml").write_text(OVERRIDDEN)
    return problems_of_config_file(overrides=[line])


def problems_of_config_file(**options: Any) -> list[str]:
    try:
        load_config("e.yml", check_plugins=False, **options)
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    return []


SECTIONS = {
    "problems of fields": partial(problems_of_fields, SMALLEST),
    "problems of mistyped required fields": partial(problems_of_fields, {}),
    "problems of points": partial(problems_of_fields, POINTS),
    "problems of priors": partial(problems_of_fields, LAYERS),
    "problems of v1": partial(problems_of_fields, V1),
    "problems of hybrid of v1": partial(problems_of_fields, HYBRID_V1),
    "warnings of fields": partial(warnings_of_fields, SMALLEST),
    "warnings of points": partial(warnings_of_fields, POINTS),
    "warnings of placeholders": partial(warnings_of_fields, {**LAYERS, "max_trial_number": 3}),
    "warnings of v1": partial(warnings_of_fields, V1),
    "warnings of hybrid of v1": partial(warnings_of_fields, HYBRID_V1),
    "notes of the start": notes_of_start,
    "problems of data": problems_of_data,
    "problems of a file": problems_of_file,
    "problems of space.json": problems_of_space,
    "syntax of a.yml": partial(problems_of_syntax, "a.yml"),
    "syntax of a.json": partial(problems_of_syntax, "a.json"),
    "overrides": problems_of_override,
}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    assert answered(Path(__file__).parent, SECTIONS) == snapshot(extension_class=SentencesFile)
