"""`pitchpipe export --format optuna`: a study that Optuna reads."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.manager.earlier_results import optuna_storage
from pitchpipe.runner.effects import MetricRow

from ..stored import results
from .conftest import Call, Storing, make_trial

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
    "units": {"_type": "randint", "_value": [1, 9]},
    "batch": {"_type": "lograndint", "_value": [8, 65]},
    "noise": {"_type": "normal", "_value": [0, 1]},
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "Empty"},
            {"_name": "Conv", "kernel": {"_type": "choice", "_value": [[1, 1], [3, 3]]}},
        ],
    },
}
EMPTY = {"lr": 0.01, "units": 3, "batch": 8, "noise": 0.5, "layer": {"_name": "Empty"}}
CONV = {"lr": 0.1, "units": 8, "batch": 64, "noise": -1.5, "layer": {"_name": "Conv", "kernel": [3, 3]}}


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Return a function that loads a study of the database that is exported."""
    optuna = pytest.importorskip("optuna")
    with ExitStack() as open_storages:

        def study(name: str) -> Any:
            storage = open_storages.enter_context(optuna_storage(f"sqlite:///{tmp_path / 'study.db'}"))
            return optuna.load_study(study_name=name, storage=storage)

        yield study


@pytest.fixture
def folder(stored: Storing) -> Any:
    """Five trials: one succeeded, one stopped early after two results, a failed, a running and a strange one."""
    trials = [
        make_trial(0, "SUCCEEDED", CONV, final=0.9),
        make_trial(1, "EARLY_STOPPED", EMPTY, reason="below the median"),
        make_trial(2, "FAILED", EMPTY),
        make_trial(3, "RUNNING", EMPTY, end_time=None),
        make_trial(4, "SUCCEEDED", {"lr": 77.0, "units": 5}, final=0.1),
    ]
    rows = [
        *results(trials[1], [0.25, {"default": 0.5}]),
        MetricRow(trial=trials[0], attempt=1, kind="FINAL", sequence=0, value="0.9", time=2.0),
    ]
    return stored(more={"searchSpace": SPACE}).write("study", trials, rows)


@pytest.mark.usefixtures("folder")
def test_export_as_a_study_keeps_states_parameters_and_curves(
    call: Call, tmp_path: Path, load: Callable[[str], Any]
) -> None:
    import optuna

    called = call("export", "study", "--format", "optuna", "-o", tmp_path / "study.db")
    assert called.code == 0
    study = load("study")
    first, second, third, strange = study.trials

    assert study.direction.name == "MAXIMIZE"
    assert (first.state.name, first.value) == ("COMPLETE", 0.9)
    assert first.params == {
        "lr": 0.1,
        "units": 8,
        "batch": 64,
        "noise": -1.5,
        "layer": "Conv",
        "layer.Conv.kernel": "[3, 3]",
    }
    assert first.distributions["units"] == optuna.distributions.IntDistribution(1, 8)
    assert first.distributions["batch"] == optuna.distributions.IntDistribution(8, 64, log=True)
    assert first.distributions["lr"] == optuna.distributions.FloatDistribution(1e-4, 1, log=True)
    assert first.user_attrs["trial_id"] == "T0000"
    assert first.datetime_complete.timestamp() - first.datetime_start.timestamp() == pytest.approx(10.0)
    assert (second.state.name, second.intermediate_values) == ("PRUNED", {0: 0.25, 1: 0.5})
    assert second.user_attrs["reason"] == "below the median"
    assert third.state.name == "FAIL"
    assert (strange.value, strange.params) == (0.1, {"units": 5})
    assert strange.user_attrs["parameters"] == {"lr": 77.0, "units": 5}
    # Optuna continues from it, with any value up to 1.
    study.optimize(lambda trial: trial.suggest_float("lr", 1e-4, 1, log=True) / 2, n_trials=1)
    assert study.best_value == 0.9


@pytest.mark.usefixtures("folder")
def test_export_as_a_study_overwrites_nothing_and_needs_a_file(call: Call, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("mine")
    called = call("export", "study", "--format", "optuna", "-o", tmp_path / "there.db")
    assert (called.code, (tmp_path / "there.db").read_text()) == (2, "mine")
    assert "exists already" in called.err
    assert "add -o study.db" in call("export", "study", "--format", "optuna").err


def test_export_of_a_search_space_that_only_its_tuner_reads_is_refused(
    stored: Storing, call: Call, tmp_path: Path
) -> None:
    tuner = {"className": "mine.Tuner", "codeDirectory": "."}
    stored(more={"searchSpace": {"x": [1, 100]}, "tuner": tuner}).write("free", [])
    called = call("export", "free", "--format", "optuna", "-o", tmp_path / "study.db")
    assert (called.code, (tmp_path / "study.db").exists()) == (2, False)
    assert "--format optuna needs a search space in the usual form: x: " in called.err


def test_curve_of_a_study_is_the_main_objective(
    stored: Storing, call: Call, tmp_path: Path, load: Callable[[str], Any]
) -> None:
    objectives = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "constraint": "<= 20"}]
    trial = make_trial(0, "SUCCEEDED", EMPTY, final={"loss": 0.5, "ms": 3.0})
    stored(objectives=objectives, more={"searchSpace": SPACE}).write(
        "named", [trial], results(trial, [{"loss": 0.75}])
    )
    assert call("export", "named", "--format", "optuna", "-o", tmp_path / "study.db").code == 0
    study = load("named")
    assert (study.trials[0].value, study.trials[0].intermediate_values) == (0.5, {0: 0.75})


def test_limits_are_constraints_of_a_study_and_limited_metrics_its_user_attributes(
    stored: Storing, call: Call, tmp_path: Path, load: Callable[[str], Any]
) -> None:
    objectives = [{"name": "f1", "direction": "maximize"}, {"name": "ms", "constraint": ">= 1, <= 3"}]
    trials = [
        make_trial(0, "SUCCEEDED", EMPTY, final={"f1": 0.9, "ms": 8.0}),
        make_trial(1, "SUCCEEDED", EMPTY, final={"f1": 0.5, "ms": 2.5}),
        make_trial(2, "SUCCEEDED", EMPTY, final={"f1": 0.8, "ms": 0.5}),
        make_trial(3, "EARLY_STOPPED", EMPTY),
    ]
    stored(objectives=objectives, more={"searchSpace": SPACE}).write("limited", trials)
    assert call("export", "limited", "--format", "optuna", "-o", tmp_path / "study.db").code == 0
    study = load("limited")
    assert (study.best_trial.number, study.best_value) == (1, 0.5)
    assert [trial.user_attrs.get("ms") for trial in study.trials] == [8.0, 2.5, 0.5, None]
    constraints = [trial.system_attrs.get("constraints") for trial in study.trials]
    assert constraints == [[5.0], [-0.5], [0.5], None]


def test_options_that_python_takes_for_equal_are_told_apart(
    stored: Storing, call: Call, tmp_path: Path, load: Callable[[str], Any]
) -> None:
    unit = {"_type": "uniform", "_value": [0, 1]}
    options = [True, 1, "1", False, 0, "0", "true", [1], "[1]", 2.0]
    names = [1, "1", True]
    nested = {"_type": "choice", "_value": [{"_name": name, "k": unit} for name in names]}
    space = {"c": {"_type": "choice", "_value": options}, "n": nested, "n.True.k": unit}
    points = [
        {"c": option, "n": {"_name": names[number % 3], "k": 0.5}, "n.True.k": number / 16}
        for number, option in enumerate(options)
    ]
    trials = [make_trial(number, "SUCCEEDED", point, 0.5) for number, point in enumerate(points)]
    stored(more={"searchSpace": space}).write("mixed", trials)
    called = call("export", "mixed", "--format", "optuna", "-o", tmp_path / "study.db")
    assert called.code == 0, called.err
    study = load("mixed")
    found = [trial.params for trial in study.trials]
    assert len({repr(one["c"]) for one in found}) == len(options)
    assert found[0]["c"] is True
    assert found[9]["c"] == 2.0
    assert [one["n.True.k"] for one in found] == [number / 16 for number in range(10)]
    assert [len(one) for one in found] == [4] * 10
    assert len({name for one in found[:3] for name in one if name.endswith(".k")}) == 4
    assert len({repr(one["n"]) for one in found[:3]}) == 3


@pytest.mark.parametrize(
    ("kind", "numbers", "values", "is_log"),
    [
        ("lognormal", [512, 128], [1e222, 1e-30, 1e304], True),
        ("lognormal", [0, 75], [1.0, 1e-90, 1e90], True),
        ("lognormal", [0, 1e300], [1.0, 1e-300, 1e300], True),
        ("qlognormal", [0, 1, 1], [0.0, 3.0, 1.0], False),
        ("qlognormal", [0, 1, 1], [2.0, 3.0, 1.0], False),
        ("qloguniform", [0.1, 8, 1], [0.1, 8.0, 1.0], True),
        ("loguniform", [5e-324, 1.7e308], [5e-324, 1.7e308, 1.0], True),
        ("normal", [0, 1e307], [-1e308, 1e308, 0.0], False),
    ],
)
def test_ranges_of_the_farthest_numbers_are_exported(
    stored: Storing,
    call: Call,
    tmp_path: Path,
    load: Callable[[str], Any],
    kind: str,
    numbers: list[float],
    values: list[float],
    is_log: bool,
) -> None:
    trials = [make_trial(place, "SUCCEEDED", {"x": value}, final=0.5) for place, value in enumerate(values)]
    stored(more={"searchSpace": {"x": {"_type": kind, "_value": numbers}}}).write("study", trials)
    assert call("export", "study", "--format", "optuna", "-o", tmp_path / "study.db").code == 0
    study = load("study")
    assert [trial.params["x"] for trial in study.trials] == values
    for trial in study.trials:
        distribution: Any = trial.distributions["x"]
        assert distribution.log is is_log
        assert distribution.low <= trial.params["x"] <= distribution.high < float("inf")
