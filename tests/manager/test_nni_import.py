"""An experiment of NNI becomes one of ours, to look at and to start others from.

What is left out because it cannot be read is in test_sentences.txt.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.compat.nni.importing import import_experiment as import_nni_experiment
from pitchpipe.config import ConfigError
from pitchpipe.experiment import Experiment
from pitchpipe.manager import control
from pitchpipe.manager.control import ControlError
from pitchpipe.manager.earlier_results import read_earlier
from pitchpipe.manager.warm_start import warm_start_of
from pitchpipe.protocol import Objective
from pitchpipe.store import FolderError
from pitchpipe.store.reading import ExperimentView, TrialQuery
from pitchpipe.tuners import find

from .experiments import config

NNIS_TUNERS = (
    *("TPE", "TPE_legacy", "Anneal", "Evolution", "GP", "GPTuner", "Metis", "MetisTuner", "SMAC", "DNGO"),
    *("DNGOTuner", "BOHB", "Hyperband", "PBT", "PBTTuner"),
)
START = 1_700_000_000_000
V3 = {
    "experimentName": "old one",
    "searchSpace": {"lr": {"_type": "uniform", "_value": [0, 1]}},
    "trialCommand": "python train.py",
    "trialCodeDirectory": "/absent",
    "maxTrialNumber": 4,
    "tuner": {"name": "TPE", "classArgs": {"optimize_mode": "maximize"}},
    "trainingService": {"platform": "remote"},
}
V1 = {
    "experimentName": "old one",
    "searchSpace": json.dumps(V3["searchSpace"]),
    "maxTrialNum": 4,
    "tuner": {"builtinTunerName": "TPE", "classArgs": {"optimize_mode": "maximize"}},
    "trial": {"command": "python train.py", "codeDir": "/absent"},
}
TRIALS = (
    ("AbCdE", "SUCCEEDED", 0.5),
    ("BcDeF", "FAILED", None),
    ("CdEfG", "RUNNING", None),
    ("DeFgH", "SUCCEEDED", "a text"),
)


def nni_folder(
    path: Path, params: Mapping[str, Any], trials: Sequence[tuple[str, str, Any]] = TRIALS
) -> Path:
    """Make what NNI leaves behind, in the columns of its 2.x databases."""
    (path / "db").mkdir(parents=True)
    db = sqlite3.connect(path / "db" / "nni.sqlite")
    db.execute(
        "CREATE TABLE TrialJobEvent (timestamp, trialJobId, event, data, logPath, sequenceId, message)"
    )
    db.execute("CREATE TABLE MetricData (timestamp, trialJobId, parameterId, type, sequence, data)")
    db.execute("CREATE TABLE ExperimentProfile (params, id, execDuration, startTime, endTime, revision)")
    for revision, text in enumerate(("{}", json.dumps(params))):
        profile = (text, "nUx2cFby", 60, START, START + 60_000, revision)
        db.execute("INSERT INTO ExperimentProfile VALUES (?, ?, ?, ?, ?, ?)", profile)
    for number, (name, last, final) in enumerate(trials):
        record = json.dumps({"parameter_id": number, "parameters": {"lr": number / 10}})
        moves = [(10, "WAITING", record), (20, "RUNNING", None), (920, last, None)]
        for after, event, data in moves if last != "RUNNING" else moves[:2]:
            row = (START + after, name, event, data, "", number, None)
            db.execute("INSERT INTO TrialJobEvent VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        found = [("PERIODICAL", 0, 0.1), ("PERIODICAL", 1, 0.2), ("FINAL", 0, final), ("FINAL", 0, 9.0)]
        for kind, sequence, value in found if final is not None else found[:2]:
            row = (START + 100, name, str(number), kind, sequence, json.dumps(json.dumps(value)))
            db.execute("INSERT INTO MetricData VALUES (?, ?, ?, ?, ?, ?)", row)
    db.commit()
    db.close()
    return path


@pytest.mark.parametrize("params", [V3, V1], ids=["v3", "v1"])
def test_experiment_of_nni_is_shown_like_one_of_ours(tmp_path: Path, params: dict[str, Any]) -> None:
    folder = import_nni_experiment(nni_folder(tmp_path / "old", params), tmp_path)
    with ExperimentView(folder) as view:
        summary, stored = view.summary(), view.config()
        trials = view.trials(TrialQuery(limit=None)).trials
        assert view.metrics(0).results[1].value == 0.2
        assert [one.trial_id for one in view.best(5)] == ["AbCdE"]
    assert (summary.id, summary.name, summary.status) == ("nUx2cFby", "old one", "VIEWED")
    assert (summary.created, summary.run_time) == (START / 1000, 60.0)
    assert summary.reason == f"an experiment of NNI, in {tmp_path / 'old'}"
    assert stored["searchSpace"] == V3["searchSpace"]
    assert stored["tuner"] == {"name": "TPE", "classArgs": {"optimize_mode": "maximize"}}
    assert stored["trialCodeDirectory"] == "/absent"
    assert stored["objectives"][0]["direction"] == "maximize"
    statuses = ["SUCCEEDED", "FAILED", "SYS_CANCELED", "SUCCEEDED"]
    assert [one.trial_id for one in trials] == [name for name, *_ in TRIALS]
    assert [one.status for one in trials] == statuses
    assert (trials[0].final, trials[3].final) == (0.5, "a text")
    assert trials[0].end_time - trials[0].start_time == pytest.approx(0.9)
    assert folder.manager() is None
    found, _ = read_earlier(str(folder.path), Objective(), tmp_path)
    assert [(one.parameters, one.loss) for one in found] == [({"lr": 0.0}, -0.5)]


def test_direction_is_the_default_of_the_algorithm_of_nni(tmp_path: Path) -> None:
    trials = [("AbCdE", "SUCCEEDED", 0.5), ("BcDeF", "SUCCEEDED", 0.7)]
    own = {"className": "mine.Tuner", "classArgs": {}}
    cases: dict[str, tuple[dict[str, Any], str, str | None]] = {
        **{
            name: ({"tuner": {"name": name}}, default, default)
            for name in NNIS_TUNERS
            for default in [signature(find(name)).parameters["optimize_mode"].default]
        },
        "old": ({"tuner": {"builtinTunerName": "anneal"}}, "minimize", "minimize"),
        "advisor": (
            {"advisor": {"builtinAdvisorName": "BOHB", "classArgs": {"R": 9}}},
            "maximize",
            "maximize",
        ),
        "both": (
            {"tuner": own, "assessor": {"classArgs": {"optimize_mode": "minimize"}}},
            "minimize",
            "minimize",
        ),
        "random": ({"tuner": {"name": "Random"}}, "maximize", None),
        "batch": ({"tuner": {"builtinTunerName": "BatchTuner"}}, "maximize", None),
        "own": ({"tuner": own}, "maximize", None),
        "none": ({}, "maximize", None),
    }
    for name, (given, shown, own_direction) in cases.items():
        old = nni_folder(tmp_path / name, {**V3, "tuner": None, **given}, trials)
        with ExperimentView(import_nni_experiment(old, tmp_path, f"new_{name}")) as view:
            assert view.objectives()[0].direction == shown, name
            assert [one.final for one in view.best(1)] == [0.7 if shown == "maximize" else 0.5], name
        # Where NNI names none, the direction of the new search counts.
        losses = [one.loss for one in read_earlier(str(old), Objective("default", "minimize"), tmp_path)[0]]
        assert losses[0] == (-0.5 if own_direction == "maximize" else 0.5), name


@pytest.mark.parametrize(
    ("named", "lrs"),
    [
        ({"AbCdE": 3, "DeFgH": 0}, [0.3, 0.1, 0.2, 0.0]),
        ({"AbCdE": 1, "BcDeF": 2, "CdEfG": None}, [0.1, 0.2, 0.0, 0.3]),  # CdEfG has no results
        ({"AbCdE": 9}, [0.0, 0.1, 0.2, 0.3]),  # of no trial
    ],
)
def test_parameters_are_those_that_the_results_name(
    tmp_path: Path, named: dict[str, int | None], lrs: list[float]
) -> None:
    old = nni_folder(tmp_path / "old", V3)
    with sqlite3.connect(old / "db" / "nni.sqlite") as db:
        for trial, parameter in named.items():
            if parameter is None:
                db.execute("DELETE FROM MetricData WHERE trialJobId = ?", (trial,))
            else:
                update = "UPDATE MetricData SET parameterId = ? WHERE trialJobId = ?"
                db.execute(update, (str(parameter), trial))
    db.close()
    folder = import_nni_experiment(old, tmp_path)
    with ExperimentView(folder) as view:
        trials = view.trials(TrialQuery(limit=None)).trials
    assert [trial.parameters["lr"] for trial in trials] == lrs
    found, _ = read_earlier(str(old), Objective(), tmp_path)
    assert [dict(one.parameters) for one in found] == [{"lr": lrs[0]}]


def test_of_many_things_that_are_left_out_the_first_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    space = {f"p{number}": {"_type": number} for number in range(30)}
    old = nni_folder(tmp_path / "old", {**V3, "searchSpace": json.dumps(space)})
    with ExperimentView(import_nni_experiment(old, tmp_path, "other")) as view:
        assert (view.experiment_id, view.config()["searchSpace"]) == ("other", {})
        reason = view.summary().reason
    assert reason.count("left out") == 11
    assert reason.endswith("; left out: 20 more")
    with closing(sqlite3.connect(old / "db" / "nni.sqlite")) as db, db:
        db.execute("UPDATE MetricData SET data = '{' WHERE trialJobId = 'DeFgH' AND type = 'FINAL'")
    read_earlier(str(old), Objective(), tmp_path)
    assert "left out: trial DeFgH: 2 results" in caplog.text


def test_what_is_no_experiment_of_nni_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"has no db/nni\.sqlite"):
        import_nni_experiment(tmp_path, tmp_path / "ours")
    (tmp_path / "db").mkdir()
    for content, why in [(b"", "no such table"), (b"not a database", "file is not a database")]:
        (tmp_path / "db" / "nni.sqlite").write_bytes(content)
        said = f"cannot be read as an experiment of NNI: {why}"
        with pytest.raises(FolderError, match=said):
            import_nni_experiment(tmp_path, tmp_path / "ours")
        with pytest.raises(ConfigError, match=said):
            warm_start_of(config(warm_start=[str(tmp_path)]), tmp_path)
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    "params", [V3, {**V1, "trial": {"command": "python train.py"}}], ids=["v3", "v1 without codeDir"]
)
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda folder: control.change_experiment(folder, {"max_trial_number": 9}), ControlError),
        (lambda folder: control.change_experiment(folder, {"search_space": {"x": {}}}), ControlError),
        (lambda folder: control.import_results(folder, [{"parameter": {"lr": 1}, "value": 1}]), ControlError),
        (lambda folder: control.add_trial(folder, {"lr": 0.1}), ControlError),
        (lambda folder: control.rerun_trial(folder, 0), ControlError),
        (lambda folder: control.kill_trial(folder, 0), ControlError),
        (control.stop_experiment, ControlError),
        (lambda folder: Experiment.restore(folder.path, max_trial_number=9), FolderError),
    ],
)
def test_nothing_changes_or_continues_an_experiment_of_nni(
    tmp_path: Path, params: dict[str, Any], change: Any, error: type[Exception]
) -> None:
    folder = import_nni_experiment(nni_folder(tmp_path / "old", params), tmp_path)
    with ExperimentView(folder) as view:
        before = (view.experiment(), view.config())
    with pytest.raises(error, match="VIEWED"):
        change(folder)
    with ExperimentView(folder) as view:
        assert (view.experiment(), view.config()) == before
