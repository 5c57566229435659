"""Which configs are accepted, and why the others are not."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pitchpipe.config import ConfigError, load_config, read_source

from .place import Place

__all__ = ["configs", "found_configs", "registered"]

# Not of the hyper-parameter half.
_OTHERS = ("nas", "compression", "retiarii", "feature_engineering", "model_compress")
_REFUSES, _RUNS = "refuses it, too", "runs it"
# What a problem says, or where its file is -> the cause, and what NNI 3.0 does.
_CAUSES = (
    ("/invalid/", "wrong on purpose", "refuses 4 of them"),
    ("for annotations", "annotations in place of a search space", _REFUSES),
    ('platform "', "another platform than `local`", "supports most of them"),
    ("a list of training services", "several platforms at once", _RUNS),
    ("no such directory", "a folder that the sources lack", _REFUSES),
    ("one set of parameters", "`multiPhase: true`", _REFUSES),
    ("NetworkMorphism searches", "`NetworkMorphism`, for architecture search", _RUNS),
    ("ut/experiment/assets", "made-up names, for a unit test that only reads it", "reads it"),
)


def configs(sources: Path) -> Iterator[str]:
    """Yield a table of the configs by version, one of the causes, and the problem of each that is refused."""
    accepted: Counter[str] = Counter()
    of: Counter[str] = Counter()
    causes: Counter[tuple[str, str, str]] = Counter()
    lines: list[str] = []
    with Place(sources) as place, patch.dict(os.environ, place.environment):
        registered(place)
        for path, version, data in found_configs(place.folder):
            of[version] += 1
            problem = _problem(path)
            if not problem:
                accepted[version] += 1
                continue
            name = str(path.relative_to(place.folder))
            cause, nni = _cause(name, problem, data)
            causes[version, cause, nni] += 1
            lines.append(f"- {name}: {problem}")
    yield "| configs | accepted | of |\n|---|---|---|"
    yield from (f"| {version} | {accepted[version]} | {of[version]} |" for version in sorted(of))
    yield "\n| configs | refused | cause | NNI 3.0 |\n|---|---|---|---|"
    yield from (f"| {row[0]} | {count} | {row[1]} | {row[2]} |" for row, count in sorted(causes.items()))
    yield ""
    yield from lines


def registered(place: Place) -> None:
    """Register the algorithms that the sources describe, as NNI's documentation says."""
    for path in sorted(place.folder.rglob("*.yml")):
        if "builtinName" in path.read_text(encoding="utf-8"):
            place.run(["nnictl", "algo", "register", "--meta", str(path)])


def found_configs(folder: Path) -> Iterator[tuple[Path, str, dict[str, Any]]]:
    """Yield the configs, each with its version and content: those with the keys that every config of it has."""
    for path in sorted([*folder.rglob("*.yml"), *folder.rglob("*.yaml")]):
        if any(other in str(path.relative_to(folder)).lower() for other in _OTHERS):
            continue
        try:
            data = read_source(path).data
        except ConfigError:
            continue
        keys = {str(key).replace("_", "").lower() for key in data} if isinstance(data, dict) else set()
        if "trainingserviceplatform" in keys:
            yield path, "NNI 1", data
        elif keys & {"trialcommand", "trainingservice"}:
            yield path, "NNI 2 and 3", data


def _problem(path: Path) -> str:
    """Return what is wrong with a config, its platform before all else; nothing if it is accepted."""
    try:
        with contextlib.chdir(path.parent):
            load_config(path)
    except ConfigError as error:
        messages = [problem.message for problem in error.problems]
        return next((message for message in messages if message.startswith('platform "')), messages[0])
    return ""


def _cause(name: str, problem: str, data: dict[str, Any]) -> tuple[str, str]:
    says = f"{name} {problem}{' for annotations' if data.get('useAnnotation') else ''}"
    return next(((cause, nni) for pattern, cause, nni in _CAUSES if pattern in says), (problem, "?"))
