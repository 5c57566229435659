"""One thing in an experiment of NNI that cannot be read does not take the others with it, and is named."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.manager import import_nni_experiment
from pitchpipe.manager.earlier_results import read_earlier
from pitchpipe.protocol import Objective
from pitchpipe.store.reading import ExperimentView, TrialQuery

from .test_nni_import import TRIALS, V3, nni_folder

NAMES = [name for name, *_ in TRIALS]
NESTED = {
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "a", "k": {"_type": "x", "_value": []}, "m": {"_type": "randint", "_value": [1, 3]}}
        ],
    }
}


def imported(old: Path, directory: Path) -> tuple[Mapping[str, Any], Mapping[str, Any], list[Any]]:
    with ExperimentView(import_nni_experiment(old, directory)) as view:
        return view.summary(), view.config(), list(view.trials(TrialQuery(limit=None)).trials)


def changed(old: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(old / "db" / "nni.sqlite")) as db, db:
        for statement in statements:
            db.execute(statement)
    return old


@pytest.mark.parametrize(
    ("space", "kept", "named"),
    [
        (
            {**V3["searchSpace"], "T": {"_type": " quniform", "_value": [100, 1000, 100]}},
            V3["searchSpace"],
            ["T in the search space: T._type: unknown type ' quniform'"],
        ),
        (
            {"a": {"_type": 5}, **V3["searchSpace"], "b": {"_type": "uniform", "_value": [1]}},
            V3["searchSpace"],
            ["a in the search space", "b in the search space"],
        ),
        (
            {**NESTED, **V3["searchSpace"]},
            {
                "layer": {
                    "_type": "choice",
                    "_value": [{"_name": "a", "m": NESTED["layer"]["_value"][0]["m"]}],
                },
                **V3["searchSpace"],
            },
            ["k in the search space"],
        ),
        ("{not JSON", {}, ["the search space: "]),
        ([1], {}, ["the search space: it is not an object"]),
    ],
)
def test_a_parameter_that_cannot_be_read(space: Any, kept: Any, named: list[str], tmp_path: Path) -> None:
    summary, config, trials = imported(nni_folder(tmp_path / "old", {**V3, "searchSpace": space}), tmp_path)
    assert config["searchSpace"] == kept
    _, *notes = summary["reason"].split("; left out: ")
    assert len(notes) == len(named)
    assert all(note.startswith(start) for note, start in zip(notes, named, strict=True))
    assert [trial["parameters"]["lr"] for trial in trials] == [0.0, 0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    "fields",
    [
        {"trialConcurrency": "many"},
        {"maxTrialNumber": -3},
        {"experimentName": 7},
        {"trialCommand": 7},
        {"tuner": "TPE"},
        {"tuner": {"name": ["TPE"], "classArgs": "none"}},
        {"tuner": {"className": "Mine", "classArgs": {"optimize_mode": "up"}}},
        {"trial": "python train.py", "assessor": 3},
    ],
)
def test_a_field_of_the_config_that_cannot_be_read(fields: dict[str, Any], tmp_path: Path) -> None:
    _, config, trials = imported(nni_folder(tmp_path / "old", {**V3, **fields}), tmp_path)
    assert config["searchSpace"] == V3["searchSpace"]
    assert [trial["trial_id"] for trial in trials] == NAMES


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ExperimentProfile SET params = '{'",
        "DELETE FROM ExperimentProfile",
        "UPDATE ExperimentProfile SET params = 1",
    ],
)
def test_without_a_config_the_trials_remain(statement: str, tmp_path: Path) -> None:
    summary, config, trials = imported(
        changed(nni_folder(tmp_path / "oldid", V3), statement), tmp_path / "new"
    )
    assert "left out: the config" in summary["reason"]
    assert (config["searchSpace"], [trial["trial_id"] for trial in trials]) == ({}, NAMES)


BAD = ["'{'", "7", "x'ff'", "'[1]'", "NULL"]


@pytest.mark.parametrize("data", BAD)
def test_a_trial_whose_record_cannot_be_read(data: str, tmp_path: Path) -> None:
    old = changed(
        nni_folder(tmp_path / "old", V3),
        f"UPDATE TrialJobEvent SET data = {data} WHERE trialJobId = 'BcDeF' AND data IS NOT NULL",
    )
    summary, _, trials = imported(old, tmp_path)
    assert [trial["trial_id"] for trial in trials] == ["AbCdE", "CdEfG", "DeFgH"]
    assert summary["reason"].endswith("; left out: trial BcDeF: no parameters are stored with it")
    assert [dict(one.parameters) for one in read_earlier(str(old), Objective(), tmp_path)[0]] == [{"lr": 0.0}]


@pytest.mark.parametrize(
    "change", ["data = '{'", "data = x'ff'", "data = NULL", "sequence = 'x'", "sequence = NULL"]
)
def test_a_result_that_cannot_be_read(change: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old = changed(
        nni_folder(tmp_path / "old", V3),
        f"UPDATE MetricData SET {change} WHERE trialJobId = 'DeFgH' AND type = 'FINAL'",
    )
    summary, _, trials = imported(old, tmp_path)
    assert [trial["final"] for trial in trials] == [0.5, None, None, None]
    assert summary["reason"].endswith("; left out: trial DeFgH: 2 results that cannot be read")
    assert [one.loss for one in read_earlier(str(old), Objective(), tmp_path)[0]] == [-0.5]
    assert "left out: trial DeFgH: 2 results" in caplog.text


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("UPDATE TrialJobEvent SET timestamp = 'never' WHERE trialJobId = 'BcDeF'", NAMES),
        ("UPDATE TrialJobEvent SET message = x'ff', logPath = CAST(x'ff' AS TEXT)", NAMES),
        (
            "UPDATE TrialJobEvent SET event = 'UNKNOWN' WHERE trialJobId = 'BcDeF'",
            ["AbCdE", "CdEfG", "DeFgH"],
        ),
        ("UPDATE MetricData SET timestamp = NULL, parameterId = x'ff'", NAMES),
        ("UPDATE ExperimentProfile SET execDuration = 'long', startTime = 'then', endTime = NULL", NAMES),
        ("INSERT INTO TrialJobEvent VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL)", NAMES),
    ],
)
def test_a_row_that_cannot_be_read(statement: str, left: list[str], tmp_path: Path) -> None:
    summary, _, trials = imported(changed(nni_folder(tmp_path / "old", V3), statement), tmp_path)
    assert [trial["trial_id"] for trial in trials] == left
    assert ("left out: trial BcDeF" in summary["reason"]) == (left != NAMES)


def test_of_many_the_first_are_named(tmp_path: Path) -> None:
    space = {f"p{number}": {"_type": number} for number in range(30)}
    summary, *_ = imported(nni_folder(tmp_path / "old", {**V3, "searchSpace": json.dumps(space)}), tmp_path)
    assert summary["reason"].count("left out") == 11
    assert summary["reason"].endswith("; left out: 20 more")
