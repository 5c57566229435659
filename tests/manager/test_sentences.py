"""What users read when an experiment begins, changes or starts from others: inputs are YAML, stoppers Python."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from pitchpipe.compat.nni.importing import import_experiment as import_nni_experiment
from pitchpipe.config import ConfigError, ExperimentConfig
from pitchpipe.manager import faults_at_start
from pitchpipe.manager.control.connection import ControlError
from pitchpipe.manager.control.extension import LIMITS, Extension, ExtensionError, extend_experiment
from pitchpipe.manager.control.operations import changed_config, checked_import
from pitchpipe.manager.earlier_results import read_earlier
from pitchpipe.manager.hooks import stoppers
from pitchpipe.manager.warm_start import warm_start_of
from pitchpipe.protocol import Objective
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import ExperimentView, TrialQuery

from ..sentences import SentencesFile, answered
from .experiments import config
from .test_nni_import import V3, nni_folder

SIZE = {"_type": "randint", "_value": [1, 9]}
COMMANDS: dict[str, Any] = {
    "model": {"_type": "choice", "_value": ["plain", "a b"]},
    "layer": {"_type": "choice", "_value": [{"_name": "it's", "size": SIZE}]},
}
SEARCH: dict[str, Any] = {
    "lr": {"_type": "uniform", "_value": [0, 1]},
    "units": {"_type": "randint", "_value": [1, 65]},
    "layer": {
        "_type": "choice",
        "_value": [{"_name": "conv", "kernel": {"_type": "choice", "_value": [3, 5]}}, {"_name": "none"}],
    },
}


def of_command(line: str) -> list[str]:
    """Return why no trial could run a command as it is meant."""
    local = {"training_service": {"platform": "local"}, "tuner": {"name": "Random"}, "max_trial_number": 1}
    found = faults_at_start(
        ExperimentConfig.from_dict({"search_space": COMMANDS, **local, **yaml.safe_load(line)})
    )
    return [f"{one.message} ({one.hint})" for one in found]


def of_change(line: str) -> list[str]:
    """Return why a running experiment refuses a change, and a stopped one an extension."""
    changes = yaml.safe_load(line)
    with pytest.raises(ControlError) as refused:
        changed_config(config(), changes)
    assert refused.value.kind == "invalid"
    if changes.keys() <= {*LIMITS}:
        with pytest.raises(ExtensionError) as again:
            extend_experiment(ExperimentFolder(Path.cwd()), Extension(**changes))
        assert str(again.value) == str(refused.value)
    return [str(refused.value)]


def of_import(line: str) -> list[str]:
    """Return why results that were measured elsewhere are refused, for an experiment of these metrics."""
    metrics, data = yaml.safe_load(line)
    try:
        assert checked_import(data, metrics) == data
    except ControlError as error:
        return [f"{error.kind}: {error}"]
    return []


def of_earlier(line: str) -> list[str]:
    """Return what is said of a table of an earlier search, and the points that come from it."""
    given = yaml.safe_load(line)
    table = Path.cwd() / "old.csv"
    table.write_text("\n".join(given.pop("rows", "").split("; ")) + "\n")
    given = {"search_space": SEARCH, "max_trial_number": 40, "warm_start": [str(table)], **given}
    try:
        found = warm_start_of(config(**given), Path.cwd())
    except ConfigError as error:
        return [str(problem).replace(f"in {Path.cwd()}:", "in the folder:") for problem in error.problems]
    return [*found.warnings, *found.notes, *(json.dumps(point) for point in found.points)]


def of_nni(line: str) -> list[str]:
    """Return what becomes of an experiment of NNI with these fields in its config, or after an SQL statement."""
    given = yaml.safe_load(line)
    old, new = Path("old"), Path("new")
    nni_folder(old, V3 | (given if isinstance(given, dict) else {}))
    if isinstance(given, str):
        with closing(sqlite3.connect(old / "db" / "nni.sqlite")) as db, db:
            db.execute(given)
    with ExperimentView(import_nni_experiment(old, new)) as view:
        reason, space = view.summary().reason, view.config()["searchSpace"]
        trials = view.trials(TrialQuery(limit=None)).trials
    earlier = [one.loss for one in read_earlier(str(old), Objective(), Path.cwd())[0]]
    for path in (old, new):
        shutil.rmtree(path)
    said = [] if space == V3["searchSpace"] else [f"space: {json.dumps(space)}"]
    said += [", ".join(f"{one.trial_id} {one.final}" for one in trials) + f"; earlier results: {earlier}"]
    return said + reason.split("; ")[1:]


def of_stopper(line: str) -> list[str]:
    """Return why a stopper cannot be made."""
    with pytest.raises(stoppers.StopperError) as refused:
        eval(line, {**vars(stoppers)})
    return [str(refused.value)]


def of_results(line: str) -> list[str]:
    """Return which result of a trial makes a stopper end the trial or the experiment, and why."""
    made, _, given = line.partition(" gets ")
    stopper = eval(made, {**vars(stoppers)})
    results = [(trial, value) for trial, *values in map(str.split, given.split(", ")) for value in values]
    iterations = Counter[str]()
    for number, (trial, value) in enumerate(results, start=1):
        iterations[trial] += 1
        result = {"default": eval(value, {"nan": math.nan}), "training_iteration": iterations[trial]}
        ends_trial = stopper(trial, result)
        if stopper.stop_all():
            return [f"result {number} ends the experiment: {stopper.reason()}"]
        if ends_trial:
            return [f"result {number} ends trial {trial}: {stopper.reason()}"]
    return []


SECTIONS = {
    "commands that no trial could run as they are meant": of_command,
    "changes": of_change,
    "imports": of_import,
    "earlier searches": of_earlier,
    "experiments of NNI": of_nni,
    "stoppers": of_stopper,
    "results that stoppers get": of_results,
}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    Path("study.db").touch()
    assert answered(Path(__file__).parent, SECTIONS) == snapshot(extension_class=SentencesFile)
