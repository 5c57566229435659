"""What rules make of values that are not numbers, in results and in a config: the table in docs/reference/faults.md."""

from __future__ import annotations

import itertools
import math
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.assessors import registry
from pitchpipe.config import ConfigError, ExperimentConfig, with_plugins_checked
from pitchpipe.dispatcher.stop_rule import StopRule
from pitchpipe.executors.simulated import SimulatedRun
from pitchpipe.manager.control.connection import ControlError
from pitchpipe.manager.control.operations import checked_import
from pitchpipe.manager.earlier_results import UnreadableSource, read_earlier
from pitchpipe.manager.hooks.hooks import Callback, Hooks
from pitchpipe.manager.hooks.stoppers import (
    CriteriaStopper,
    ExperimentPlateauStopper,
    FunctionStopper,
    Stopper,
    StopperError,
    TrialPlateauStopper,
    as_stopper,
)
from pitchpipe.manager.warm_start import warm_start_of
from pitchpipe.protocol import Objective, dumps
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.verdicts import check_final, fault_of_intermediate
from pitchpipe.store.reading.csv_cells import csv_text
from pitchpipe.store.reading.json_values import add_json_functions
from pitchpipe.store.reading.trial_query import Condition, TrialQuery

from ..runner.driver import Driver
from .experiments import SPACE, config, run, simulated, trials_of

MISSING = object()
HUGE = st.integers(10**309, 10**320)
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "missing, `null`": st.sampled_from([MISSING, None]),
    "NaN": st.just(math.nan),
    "infinite": st.sampled_from([math.inf, -math.inf]),
    "`true`, `false`": st.booleans(),
    'text, also `"0.5"`': st.sampled_from(["", "0.5", "NaN", "true", "\ud800"]) | st.text(max_size=9),
    "list, object": st.lists(VALUES, max_size=3)
    | st.dictionaries(st.text(max_size=3), VALUES, max_size=3)
    | st.sampled_from([{"__set__": 5}, {"__ndarray__": 1}]),
    "integer above 1.8e308": HUGE | HUGE.map(lambda number: -number),
}


GIVEN = st.one_of(*KINDS.values()).filter(lambda value: value is not MISSING)


def report(value: Any, name: str = "loss") -> dict[str, Any]:
    """Return what a trial reports; without the metric if that is missing."""
    return {"other": 0.5} if value is MISSING else {"other": 0.5, name: value}


def ended(stopper: Stopper, value: Any) -> bool:
    """Return whether a stopper ends a trial at a result."""
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    hooks = Hooks(stopper=stopper)
    hooks.begin(driver.runner, list, lambda: driver.now, dict)
    driver.report(trial, report(value))
    return bool(hooks.judge(driver.runner.new_results, driver.now))


def flat(value: Any) -> bool:
    """Return whether a trial that reported 1 before, and an experiment in which another did, are at a standstill."""
    trial = TrialPlateauStopper(metric="loss", num_results=2, grace_period=2)
    experiment = ExperimentPlateauStopper(metric="loss", top=2)
    assert not trial("a", report(1.0))
    assert not experiment("a", report(1.0))
    found = trial("a", report(value))
    assert experiment("b", report(value)) is found
    return found


def listed(condition: str, value: Any) -> bool:
    """Return whether a condition finds a trial with this final result."""
    with closing(sqlite3.connect(":memory:")) as db:
        add_json_functions(db)
        db.execute("CREATE TABLE trials (final)")
        db.execute("INSERT INTO trials VALUES (?)", (dumps(report(value)),))
        where, bound = TrialQuery(conditions=[Condition.parse(condition)]).where()
        return bool(db.execute(f"SELECT 1 FROM trials t WHERE {where}", bound).fetchall())


def succeeded(value: Any) -> bool:
    """Return whether a final result is one, for an objective and for a limit beside one."""
    alone = check_final(dumps(report(value)), ("loss",))
    beside = check_final(dumps(report(value)), ("other", "loss"))
    assert isinstance(alone, tuple) is isinstance(beside, tuple)
    return isinstance(alone, tuple)


def judged(value: Any) -> bool:
    """Return whether an intermediate result reaches the assessor, and a bare one, too."""
    found = not fault_of_intermediate(dumps(report(value)), "loss", ("loss",))
    if value is not MISSING and not isinstance(value, dict):
        assert (not fault_of_intermediate(dumps(value), "loss", ("loss",))) is found
    return found


def counted_at_the_end(value: Any) -> bool:
    """Return whether `stop_when` counts a trial."""
    rule = StopRule({"expectedGainBelow": 0.1, "minTrials": 1}, [{"name": "loss", "direction": "minimize"}])
    rule.final({"trial_job_id": "a", "value": dumps(report(value))})
    rule.trial_end({"parameters": {"x": 1}}, "a", success=True)
    return bool(rule.state()["_results"])


def counted_at_the_start(value: Any) -> bool:
    """Return whether a warm start takes a row of a CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "old.csv"
        file.write_bytes(csv_text([["x", "loss"], [0.5, None if value is MISSING else value]]))
        try:
            return bool(read_earlier(str(file), Objective("loss"), file.parent)[0])
        except UnreadableSource:
            return False


def at_least_half(value: Any) -> bool:
    return bool(value >= 0.5)


# What each rule says of a value, and what is right where the table says "compared".
RULES: dict[str, tuple[Callable[[Any], bool], Callable[[Any], bool]]] = {
    '`stop={"loss": 0.5}`': (lambda value: ended(CriteriaStopper({"loss": 0.5}), value), at_least_half),
    "`TrialPlateauStopper`, `ExperimentPlateauStopper`": (flat, lambda value: bool(value == 1)),
    'a function `result["loss"] >= 0.5` as `stop`': (
        lambda value: ended(FunctionStopper(lambda _, result: result["loss"] >= 0.5), value),
        at_least_half,
    ),
    '`--where "final.loss >= 0.5"`': (partial(listed, "final.loss >= 0.5"), at_least_half),
    '`--where "final.loss != 0.5"`': (partial(listed, "final.loss != 0.5"), lambda value: bool(value != 0.5)),
    "an assessor, of an intermediate result": (judged, bool),
    "an objective or a limit, of the final result": (succeeded, lambda _: True),
    "`stop_when`": (counted_at_the_end, bool),
    "`warm_start` from CSV": (counted_at_the_start, bool),
}
ANSWERS = {"not met": False, "not judged": False, "does not count": False, "trial fails": False}
ANSWERS |= {"met": True, "judged": True, "counts": True}


def _table() -> dict[str, dict[str, str]]:
    """Return the cells of the table in the docs, by rule and kind of value."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "faults.md").read_text()
    section = text.partition("### A value is not a number")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {rule: dict(zip(lines[0][1:], cells, strict=True)) for rule, *cells in lines[1:]}


TABLE = _table()


def test_table_has_every_rule_and_every_kind_of_value() -> None:
    assert list(TABLE) == list(RULES)
    assert all(list(cells) == list(KINDS) for cells in TABLE.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=25)
@given(data=st.data())
def test_rule_treats_a_value_as_the_table_says(rule: str, kind: str, data: st.DataObject) -> None:
    value, word = data.draw(KINDS[kind]), TABLE[rule][kind]
    observe, compare = RULES[rule]
    assert observe(value) is (compare(value) if word == "compared" else ANSWERS[word])


# --------------------------------------------------------------------------- whole experiments


class Comparing(Callback):
    """Raises at the first result that it cannot compare."""

    def on_trial_result(self, trial: Any, result: Mapping[str, Any]) -> None:
        if not result["loss"] <= 1:
            raise ValueError("diverged")


NEEDED: dict[str, dict[str, Any]] = {
    "Threshold": {"upper": 9},
    "Hyperband": {"R": 4},
    "Curvefitting": {"epoch_num": 4},
    "Patient": {"assessor": "Medianstop"},
}
FOLDERS = itertools.count()
RUNS = st.lists(st.one_of(*KINDS.values()), min_size=1, max_size=4)


@pytest.mark.parametrize("assessor", registry.names())
@settings(max_examples=6)
@given(
    reports=st.lists(RUNS, min_size=4, max_size=4),
    name=st.sampled_from(["default", "loss", "done", ""]),
    limits=st.sampled_from([[], [{"name": "loss", "constraint": "<= 3"}]]),
)
def test_no_reported_value_ends_an_experiment(
    assessor: str,
    reports: list[list[Any]],
    name: str,
    limits: list[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    behaviours = itertools.cycle(reports)

    def behave(_: Mapping[str, Any]) -> SimulatedRun:
        odd = [report(value, name) if name or value is MISSING else value for value in next(behaviours)]
        return SimulatedRun(odd[-1], [0.5, *odd])

    directory = tmp_path_factory.mktemp(f"odd{next(FOLDERS)}")
    manager = simulated(
        directory,
        behave,
        max_trial_number=4,
        objectives=[{"direction": "minimize"}, *limits],
        assessor={"name": assessor, "class_args": NEEDED.get(assessor, {})},
        stop_when={"expected_gain_below": 0.001, "min_trials": 2},
    )
    stopper = as_stopper([{"loss": 5}, lambda _, result: result["loss"] < -1])
    manager.hooks = Hooks(callbacks=[Comparing()], stopper=stopper)
    assert run(manager) is ExperimentStatus.DONE
    assert all(trial.status.is_final for trial in trials_of(directory))


# --------------------------------------------------------------------------- what users write


FIELDS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "stop_when": lambda value: {"stop_when": {"expected_gain_below": value}},
    "limit": lambda value: {"objectives": [{"direction": "minimize", "constraint": value}]},
    "reference": lambda value: {"objectives": [{"direction": "minimize", "reference": value}]},
    "defaults": lambda value: {"defaults": {"x": value, "y": "a"}},
    "initial_points": lambda value: {"initial_points": [{"x": value, "y": "a"}]},
    "priors": lambda value: {"priors": {"x": {"centre": value}}},
    "assessor": lambda value: {"assessor": {"name": "Threshold", "class_args": {"upper": 1, "lower": value}}},
    "duration": lambda value: {"max_experiment_duration": value},
}
# Without a value, a field is as if it were not given; minus infinity is no lower bound.
TAKEN = {
    ("limit", None),
    ("reference", None),
    ("assessor", None),
    ("assessor", -math.inf),
    ("duration", None),
}


@pytest.mark.parametrize("field", FIELDS)
@settings(max_examples=40)
@given(value=GIVEN)
def test_value_that_is_not_a_number_is_refused_in_a_config(field: str, value: Any) -> None:
    data = {"search_space": SPACE, "tuner": {"name": "TPE"}, **FIELDS[field](value)}
    if not isinstance(value, list | dict) and (field, value) in TAKEN:
        with_plugins_checked(ExperimentConfig.from_dict(data, needs_command=False))
    else:
        with pytest.raises(ConfigError):
            with_plugins_checked(ExperimentConfig.from_dict(data, needs_command=False))


@settings(max_examples=40)
@given(value=GIVEN, column=st.sampled_from(["x", "y", "latency", "final.latency", "other"]))
def test_warm_start_takes_what_fits_beside_any_cell(value: Any, column: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "old.csv"
        good, odd = {"x": 0.5, "y": "a"}, {"x": 0.25, "y": "b", column: value}
        head = ["x", "y", "default", *{column} - good.keys()]
        rows = [[{"default": 0.1, **row}.get(name) for name in head] for row in (good, odd)]
        file.write_bytes(csv_text([head, *rows]))
        limited = [{"direction": "minimize"}, {"name": "latency", "constraint": "<= 20"}]
        found = warm_start_of(config(objectives=limited, warm_start=[str(file)]), file.parent)
    assert good in found.points


@pytest.mark.parametrize("names", [("default",), ("default", "ms")])
@given(value=GIVEN)
def test_imported_result_that_is_not_a_number_is_refused(names: tuple[str, ...], value: Any) -> None:
    for given_value in (value, {"default": value, "ms": 1.0}):
        with pytest.raises(ControlError):
            checked_import([{"parameter": {"x": 1}, "value": given_value}], names)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("infinite", "`true`, `false`")])
@given(data=st.data())
def test_bound_that_is_not_a_number_is_refused_by_a_stopper(kind: str, data: st.DataObject) -> None:
    value = data.draw(KINDS[kind].filter(lambda value: value is not MISSING))
    with pytest.raises(StopperError):
        CriteriaStopper({"loss": value})
