"""Of nearly equal trials the one that changes the defaults least, and which of its changes matter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pitchpipe.protocol import Objective
from pitchpipe.search_space import SearchSpace
from pitchpipe.store.reading import ExperimentView, TrialRow
from pitchpipe.store.reading.closeness import Closeness
from pitchpipe.store.reading.read_model import ABSENT, ChangedParameter, ClosestTrial
from pitchpipe.telling.best_lines import changes_text, closeness_lines

from ...stored import a_row, a_trial, some_repeats

UNIT = {"_type": "uniform", "_value": [0, 1]}
SPACE: dict[str, Any] = {"x": UNIT, "y": UNIT, "lr": {"_type": "loguniform", "_value": [1e-4, 1]}}
START: dict[str, Any] = {"x": 0.5, "y": 0.5, "lr": 0.1}
LOSS = (Objective(),)


def closest(
    trials: Sequence[tuple[Mapping[str, Any], Any]],
    objectives: Sequence[Objective] = LOSS,
    space: Mapping[str, Any] = SPACE,
) -> ClosestTrial | None:
    """Return what is found for trials, pairs of parameters and results; the first is that of the defaults."""
    named = [result if isinstance(result, dict) else {"default": result} for _, result in trials]
    values = {number: result for number, result in enumerate(named) if result != {"default": None}}

    def rows(numbers: Iterable[int]) -> list[TrialRow]:
        sources = {0: "defaults"}
        return [
            a_row(
                number,
                named[number],
                parameters=trials[number][0],
                parameter_source=sources.get(number, "algorithm"),
            )
            for number in numbers
        ]

    return Closeness(SearchSpace.parse(space), trials[0][0], objectives, values, rows).found()


def found_in(trials: Sequence[tuple[Mapping[str, Any], Any]], *args: Any) -> ClosestTrial:
    found = closest(trials, *args)
    assert found is not None
    return found


def test_least_changed_of_the_nearly_equal_trials() -> None:
    far, near = {"x": 0.9, "y": 0.1, "lr": 0.01}, {"x": 0.5, "y": 0.6, "lr": 0.01}
    found = found_in([(START, 1.0), (far, 0.0), (near, 0.05), ({**START, "lr": 0.02}, 0.06)])
    assert (found.trial.sequence_id, found.best.sequence_id) == (2, 1)
    assert changes_text(found.changes) == "y 0.5 -> 0.6, lr 0.1 -> 0.01"
    assert list(closeness_lines(found)) == [
        "closest to your defaults: trial 2, 0.05 (best: 0, trial 1); changes: y 0.5 -> 0.6, lr 0.1 -> 0.01",
        "the best trial (1): changes: x 0.5 -> 0.9, y 0.5 -> 0.1, lr 0.1 -> 0.01",
    ]


def test_maximized_result_and_defaults_without_a_result() -> None:
    # The median, 0.5, takes the place of the defaults: 0.97 is not within 5 % of 1 - 0.5, 0.98 is.
    trials = [(START, None), ({**START, "x": 1.0}, 1.0), ({**START, "x": 0.6}, 0.97)]
    trials += [({**START, "x": 0.7}, 0.98), ({**START, "x": 0.1}, 0.1), ({**START, "x": 0.2}, 0.2)]
    trials += [({**START, "x": 0.3}, 0.5), ({**START, "x": 0.0}, 0.0)]
    found = found_in(trials, [Objective(direction="maximize")])
    assert (found.trial.sequence_id, found.best.sequence_id) == (3, 1)


def test_defaults_themselves_may_be_the_best() -> None:
    found = found_in([(START, 0.1), ({**START, "x": 0.9}, 0.4)])
    assert list(closeness_lines(found)) == [
        "closest to your defaults: trial 0, 0.1 (the best trial); no changes"
    ]


def test_family_is_named_as_one() -> None:
    found = found_in([(START, 0.1), ({**START, "x": 0.9}, 0.0)])
    family = a_row(1, {"default": 0.0}, repeats=some_repeats(3, 5))
    assert next(closeness_lines(replace(found, trial=family, best=family))).startswith(
        "closest to your defaults: family 1, 0 (the best family); "
    )


def test_nothing_before_a_trial_has_succeeded() -> None:
    assert closest([(START, None)]) is None
    assert list(closeness_lines(None)) == []


def model_trials(count: int, loss: Any, **fixed: Any) -> list[tuple[dict[str, Any], Any]]:
    rng, space = np.random.default_rng(1), SearchSpace.parse(SPACE)
    points = [START, *({**space.sample(rng), **fixed} for _ in range(count))]
    return [(point, loss(point)) for point in points]


def test_changes_that_do_not_matter_are_only_counted() -> None:
    trials = model_trials(60, lambda point: (np.log10(point["lr"]) + 3) ** 2 + 0.01 * point["x"])
    found = found_in(trials)
    for changes in (found.changes, found.best_changes):
        (change,) = changes
        assert (change.parameter, change.default) == ("lr", 0.1)
    assert (found.unimportant, found.best_unimportant) == (2, 2)
    assert next(closeness_lines(found)).endswith("; 2 others seem not to matter")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("cost", "expected"), [(0.3, {"lr", "act"}), (0.0, {"lr"})])
def test_option_that_costs_a_little_matters(cost: float, expected: set[str], seed: int) -> None:
    """Keeping act=c costs 12 % of the gain; 5 % make a difference."""
    space = {**SPACE, "act": {"_type": "choice", "_value": ["a", "b", "c"]}}
    start = {"x": 0.1, "y": 0.2, "lr": 0.1, "act": "c"}

    def loss(point: Mapping[str, Any]) -> float:
        small = 0.01 * (point["x"] - 0.5) ** 2 + cost * (point["act"] == "c")
        return (np.log10(point["lr"]) + 2.5) ** 2 + small

    parsed, rng = SearchSpace.parse(space), np.random.default_rng(seed)
    points = [start, *(parsed.sample(rng) for _ in range(30))]
    points.append({"x": 0.5, "y": 0.5, "lr": 10**-2.5, "act": "a"})
    found = found_in([(point, loss(point)) for point in points], LOSS, space)
    assert {change.parameter for change in found.best_changes} == expected


def test_change_that_a_limit_needs_matters() -> None:
    # y costs a little and is only there to keep the limit.
    limit = Objective(name="ms", direction=None, at_most=20.0)

    def report(point: Mapping[str, Any]) -> dict[str, float]:
        return {"default": (point["x"] - 0.9) ** 2 + 0.01 * abs(point["y"] - 0.5), "ms": 10 + 40 * point["y"]}

    trials = [(START, report(START)), *model_trials(60, report)[1:]]
    found = found_in(trials, [Objective(), limit])
    assert {change.parameter for change in found.best_changes} == {"x", "y"}
    without = found_in(trials, [Objective()])
    assert {change.parameter for change in without.best_changes} == {"x"}


def test_knee_of_several_objectives_takes_the_place_of_the_best() -> None:
    two = [Objective(name="loss"), Objective(name="size")]
    reports = [(0.0, 1.0), (0.1, 0.1), (0.12, 0.11), (1.0, 0.0)]
    trials = [(START, {"loss": 2.0, "size": 2.0})]
    trials += [
        ({**START, "x": x}, {"loss": loss, "size": size})
        for x, (loss, size) in zip((0.0, 0.9, 0.6, 1.0), reports, strict=True)
    ]
    found = found_in(trials, two)
    assert (found.trial.sequence_id, found.best.sequence_id) == (3, 2)
    first, second = closeness_lines(found)
    assert "trial 3, loss 0.12, size 0.11 (knee: loss 0.1, size 0.1, trial 2); changes: x " in first
    assert second.startswith("the knee (2): changes: x ")


def test_front_without_a_knee_has_its_best_in_the_first_objective() -> None:
    two = [Objective(name="loss"), Objective(name="size")]
    trials = [(START, {"loss": 0.0, "size": 1.0}), ({**START, "x": 0.9}, {"loss": 1.0, "size": 0.0})]
    (line,) = closeness_lines(found_in(trials, two))
    assert line == "closest to your defaults: trial 0, loss 0, size 1 (the best trial in loss); no changes"


def test_change_of_a_choice_brings_what_is_below_it() -> None:
    nested = {"_name": "adam", "beta": {"_type": "uniform", "_value": [0.8, 1]}}
    space = {"solver": {"_type": "choice", "_value": [{"_name": "sgd"}, nested]}, "x": UNIT}
    start = {"solver": {"_name": "sgd"}, "x": 0.5}
    found = found_in([(start, 1.0), ({**start, "solver": {"_name": "adam", "beta": 0.9}}, 0.0)], LOSS, space)
    assert changes_text(found.changes) == "solver sgd -> adam, solver.beta 0.9"


def test_trials_of_an_earlier_search_space_are_left_out() -> None:
    found = found_in([(START, 1.0), ({**START, "x": 0.9}, 0.0), ({"x": 0.51}, 0.0)])
    assert found.trial.sequence_id == 1


@pytest.mark.parametrize("keep_close", [True, False])
def test_read_from_a_store(view_of: Callable[..., ExperimentView], keep_close: bool) -> None:
    start = {"lr": 0.5, "units": 16}
    trials = [
        a_trial(0, value=1.0, parameters=start, source="defaults"),
        a_trial(1, value=0.01, parameters={"lr": 0.6, "units": 16}),
        a_trial(2, value=0.0, parameters={"lr": 0.1, "units": 32}),
    ]
    found = view_of(*trials, defaults=start, keep_close=keep_close).closest_to_defaults()
    if not keep_close:
        assert found is None
        return
    assert found is not None
    assert found.trial.trial_id == "T0001"
    assert found.changes == [ChangedParameter("lr", 0.5, 0.6)]


def test_constants_need_not_be_among_the_defaults(view_of: Callable[..., ExperimentView]) -> None:
    defaults = a_trial(0, value=1.0, parameters={"lr": 0.5, "epochs": 5}, source="defaults")
    better = a_trial(1, value=0.0, parameters={"lr": 0.6, "epochs": 5})
    config = {"search_space": {"lr": UNIT, "epochs": 5}, "defaults": {"lr": 0.5}, "keep_close": True}
    found = view_of(defaults, better, **config).closest_to_defaults()
    assert found is not None
    assert changes_text(found.changes) == "lr 0.5 -> 0.6"


NESTED = {
    "model": {
        "_type": "choice",
        "_value": [
            {"_name": "knn"},
            {"_name": "svm", "c": UNIT, "kernel": {"_type": "choice", "_value": ["a", "b"]}},
        ],
    },
    "lr": UNIT,
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "default", [{"_name": "knn"}, {"_name": "svm", "c": 0.9, "kernel": "a"}], ids=["knn", "svm"]
)
def test_changes_of_a_nested_choice(default: dict[str, Any], seed: int) -> None:
    rng, space = np.random.default_rng(seed), SearchSpace.parse(NESTED)

    def loss(point: Mapping[str, Any]) -> float:
        model = point["model"]
        return point["lr"] * 0.1 + {"knn": 0.3, "svm": 0.2}[model["_name"]] + model.get("c", 0) * 0.05

    start = {"model": default, "lr": 0.9}
    points = [start, *(space.sample(rng) for _ in range(59))]
    found = found_in([(point, loss(point)) for point in points], LOSS, NESTED)
    changes = {one.parameter: (one.default, one.value) for one in found.best_changes}
    assert found.best.parameters["model"]["_name"] == "svm"
    assert changes["lr"][0] == 0.9
    assert changes["lr"][1] < 0.5
    assert ("model" in changes) is (default["_name"] == "knn")


@pytest.mark.parametrize("huge", [1e155, 1e200, sys.float_info.max])
@pytest.mark.parametrize("side", ["worse", "better", "both"])
@pytest.mark.parametrize(
    "limit", [None, Objective(name="ms", direction=None, at_most=0.5)], ids=["free", "limited"]
)
def test_changes_beside_huge_results(huge: float, side: str, limit: Objective | None) -> None:
    sign = {"worse": 1.0, "better": -1.0, "both": 1.0}[side]

    def result(number: int, point: Mapping[str, Any]) -> dict[str, float]:
        wild = sign * (-1 if side == "both" and number % 2 else 1) * huge
        return {
            "default": wild if number % 5 == 4 else point["x"],
            "ms": huge if number % 7 == 6 else point["y"],
        }

    points = [point for point, _ in model_trials(40, lambda _: 0.0)]
    objectives = [*LOSS, *([limit] if limit else [])]
    found = found_in([(point, result(number, point)) for number, point in enumerate(points)], objectives)
    values = found.best.values
    assert (values["default"] == -huge) is (side != "worse")
    assert found.trial.values["default"] <= max(values["default"], 0.5)


def test_null_is_an_option_and_what_is_absent_is_none() -> None:
    options = {"_type": "choice", "_value": [None, "sqrt", {"a": None}]}
    nested = {"_type": "choice", "_value": [{"_name": "a"}, {"_name": "b", "of": options}]}
    space = {"m": nested, "features": options, "other": options}
    start = {"m": {"_name": "a"}, "features": None, "other": "sqrt"}
    point = {"m": {"_name": "b", "of": None}, "features": {"a": None}, "other": None}
    found = found_in([(start, 1.0), (point, 0.0)], LOSS, space)
    assert changes_text(found.changes) == (
        'm a -> b, m.of null, features null -> {"a": null}, other sqrt -> null'
    )
    assert [change.default is not ABSENT for change in found.changes] == [True, False, True, True]
