"""Tuners and assessors by name, and what is wrong with their arguments."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from pitchpipe import assessors, tuners
from pitchpipe.assessors import registry as assessor_registry
from pitchpipe.tuners import registry

from .searches import LINE, search, started

EACH = pytest.mark.parametrize(
    ("package", "table", "kind"),
    [
        (tuners, registry.REGISTRY, tuners.Tuner),
        (assessors, assessor_registry.REGISTRY, assessors.Assessor),
    ],
    ids=["tuners", "assessors"],
)


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("TPE", "TPETuner"),
        ("tpe", "TPETuner"),
        ("random", "RandomTuner"),
        ("GRIDSEARCH", "GridSearchTuner"),
        ("Batch", "BatchTuner"),
        ("BatchTuner", "BatchTuner"),
    ],
)
def test_names_in_any_spelling(name: str, cls: str) -> None:
    assert type(tuners.create(name)).__name__ == cls


def test_assessors_have_names_and_arguments_too() -> None:
    made = assessors.create("MEDIANSTOP", optimize_mode="minimize")
    assert isinstance(made, assessors.MedianstopAssessor)
    with pytest.raises(
        assessors.UnknownAlgorithm, match=r"did you mean Medianstop\? \(known: ASHA, .*Medianstop"
    ):
        assessors.create("median_stop")
    with pytest.raises(TypeError, match="unknown argument 'optimise_mode'; did you mean 'optimize_mode'"):
        assessors.create("Medianstop", optimise_mode="maximize")


def test_arguments_arrive() -> None:
    first, second = (tuners.create("Random", seed=7, optimize_mode="maximize") for _ in range(2))
    for tuner in (first, second):
        tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    assert first.generate_parameters(0) == second.generate_parameters(0)


def test_an_unknown_name_shows_the_nearest_and_all() -> None:
    with pytest.raises(tuners.UnknownAlgorithm, match="did you mean GridSearch") as caught:
        tuners.create("grid_search")
    assert f"(known: {', '.join(tuners.names())})" in str(caught.value)


def test_the_error_survives_pickling() -> None:
    error = tuners.UnknownAlgorithm("tuner", "tpee", ["TPE"])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_unknown_argument_shows_the_nearest() -> None:
    with pytest.raises(TypeError, match="TPETuner: unknown argument 'tpe_arg'; did you mean 'tpe_args'"):
        tuners.create("TPE", tpe_arg={})


def test_an_argument_of_a_tuner_without_any() -> None:
    with pytest.raises(TypeError, match="it takes no arguments"):
        tuners.create("Batch", seed=1)


def test_check_finds_missing_arguments() -> None:
    class Needy(tuners.Tuner):
        def __init__(self, path: str) -> None:
            self.path = path

    assert [problem.message for problem in tuners.check(Needy, {})] == ["argument 'path' is missing"]


def test_check_accepts_any_name_where_the_constructor_does() -> None:
    class Open(tuners.Tuner):
        def __init__(self, **anything: Any) -> None:
            self.anything = anything

    assert tuners.check(Open, {"x": 1}) == []


@EACH
def test_entry_points_are_found(
    monkeypatch: pytest.MonkeyPatch, package: Any, table: Any, kind: type
) -> None:
    entry = EntryPoint("Mine", "pitchpipe.tuners.random:RandomTuner", table.group)
    monkeypatch.setattr(table, "entry_points", lambda: {"Mine": entry})
    assert package.find("mine") is tuners.RandomTuner
    assert package.names() == sorted([*table.built_in, "Mine"], key=str.lower)


def test_built_in_names_are_known_without_a_look_through_the_installed_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = list[str]()
    monkeypatch.setattr(registry.REGISTRY, "entry_points", lambda: looks.append("a look") or {})
    assert "tpe" in registry.REGISTRY
    assert looks == []
    assert "mine" not in registry.REGISTRY
    assert looks == ["a look"]


@EACH
def test_every_name_of_the_table_loads(package: Any, table: Any, kind: type) -> None:
    assert all(issubclass(package.find(name), kind) for name in table.built_in)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'pitchpipe\.tuners' has no attribute 'Nothing'"):
        getattr(tuners, "Nothing")  # noqa: B009 - a type checker would see it


def test_packages_import_no_numpy_and_tpe_is_constructed_without_scipy() -> None:
    code = (
        "import sys, pitchpipe.assessors, pitchpipe.tuners as tuners; assert 'numpy' not in sys.modules; "
        "tuners.create('TPE'); assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


@pytest.mark.parametrize(
    "name", ["Anneal", "Auto", "CMAES", "DNGO", "Evolution", "GP", "Metis", "QMC", "SMAC", "TPE"]
)
def test_very_many_options_take_little_memory(name: str) -> None:
    tuner = started(
        tuners.create(name, optimize_mode="minimize", seed=1),
        {**LINE, "set": {"_type": "choice", "_value": [f"set-{i}" for i in range(40_000)]}},
    )
    search(tuner, lambda point: point["x"], 2)  # libraries are imported
    tracemalloc.start()
    search(tuner, lambda point: point["x"], 12, first=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 2**20
