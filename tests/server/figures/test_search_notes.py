"""Health notes: each appears where it is true, and none where nothing is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.server.figures import ExperimentTable, Objective, TrialRecord, dimensions_of, health_notes
from pitchpipe.tuners import RandomTuner, TPETuner

Function = Callable[[dict[str, Any]], float]
UNIT: dict[str, Any] = {"_type": "uniform", "_value": [0, 1]}
SPACE = {"x": UNIT, "y": UNIT}
RANDOM = (
    "random search would have done as well; check that the metric depends on these parameters, and average out its"
    " noise with `repeats`"
)


def bowl(parameters: dict[str, Any]) -> float:
    return (parameters["x"] - 0.3) ** 2 + (parameters["y"] - 0.6) ** 2


def table(
    records: Sequence[TrialRecord], space: Any = SPACE, *goals: Objective, limits: Sequence[Objective] = ()
) -> ExperimentTable:
    return ExperimentTable.of("made", goals or [Objective()], records, dimensions_of(space), limits=limits)


def searched(
    function: Function, space: Any = SPACE, count: int = 60, seed: int = 0, *, random: bool = False
) -> list[TrialRecord]:
    tuner = RandomTuner(seed=seed) if random else TPETuner(seed=seed)
    tuner.update_search_space(space)
    found = []
    for number in range(count):
        parameters = tuner.generate_parameters(number)
        value = function(parameters)
        tuner.receive_trial_result(number, parameters, value)
        found.append(TrialRecord(number, "SUCCEEDED", parameters, {"default": value}))
    return found


def noise(seed: int = 0) -> Function:
    rng = np.random.default_rng(seed)
    return lambda _: float(rng.standard_normal())


@pytest.mark.parametrize("seed", range(2))
def test_good_search_has_no_notes(seed: int) -> None:
    assert health_notes(table(searched(bowl, seed=seed))) == []


def notes_of(losses: Sequence[float]) -> list[str]:
    """Return the notes on a search with these results, and without one where a loss is NaN: that trial failed."""
    rng = np.random.default_rng(0)
    points = [{"x": float(x), "y": float(y)} for x, y in rng.random((len(losses), 2))]
    return health_notes(
        table(
            [
                TrialRecord(n, "FAILED" if math.isnan(loss) else "SUCCEEDED", point, {"default": float(loss)})
                for n, (point, loss) in enumerate(zip(points, losses, strict=True))
            ]
        )
    )


def improving(rng: np.random.Generator, explores: float, count: int = 60, size: int = 5) -> list[float]:
    """Return the results of a search that draws ten points at random, and then changes its best or explores."""
    found: list[tuple[float, Any]] = []
    for number in range(count):
        is_random = number < 10 or rng.random() < explores
        best = min(found, key=lambda one: one[0])[1] if found else None
        point = rng.random(size) if is_random else np.clip(best + rng.normal(0, 0.1, size), 0, 1)
        found.append((float(((point - 0.4) ** 2).sum()), point))
    return [loss for loss, _ in found]


@pytest.mark.parametrize("explores", [0.0, 0.3, 0.5])
def test_search_that_improves_is_never_said_to_be_like_random_search(explores: float) -> None:
    rng = np.random.default_rng(0)
    assert [seed for seed in range(60) if RANDOM in notes_of(improving(rng, explores))] == []


def test_search_that_finds_the_best_early_and_explores_is_hardly_ever_said_to_be_like_random_search() -> None:
    # Two parameters: ten random points are nearly as good as all that follow.
    rng = np.random.default_rng(1)
    assert sum(RANDOM in notes_of(improving(rng, 0.5, size=2)) for _ in range(100)) <= 1


@pytest.mark.parametrize("draw", ["standard_normal", "random", "standard_exponential"])
def test_search_that_draws_at_random_is_often_said_to_be_like_random_search(draw: str) -> None:
    rng = np.random.default_rng(0)
    assert sum(RANDOM in notes_of(getattr(rng, draw)(60)) for _ in range(60)) >= 12


def test_search_that_explores_where_results_are_bad_late_has_improved() -> None:
    """The results of a user, whose trials fail in a region: the best is found at the end, among worse ones."""
    nan = math.nan
    early = [
        1.07,
        0.85,
        nan,
        1.01,
        1.81,
        nan,
        1.02,
        1.08,
        1.11,
        0.68,
        nan,
        0.54,
        0.41,
        nan,
        nan,
        0.53,
        0.57,
        0.41,
    ]
    middle = [
        0.52,
        nan,
        0.36,
        nan,
        nan,
        0.37,
        0.34,
        0.68,
        nan,
        0.95,
        0.75,
        0.89,
        0.66,
        1.63,
        1.07,
        1.36,
        2.65,
    ]
    late = [0.51, 0.6, 0.43, 0.38, 3.16, 0.36, 0.36, 1.22, 2.05, 0.42, 0.58, 1.12, 0.45, 0.33, 0.3]
    assert RANDOM not in notes_of([*early, *middle, *late])


@pytest.mark.parametrize("seed", range(2))
def test_strict_assessor_does_not_make_a_search_look_random(seed: int) -> None:
    """Every trial worse than the median of those before it is stopped: more than half of the later ones."""
    finished: list[float] = []
    records = []
    for trial in searched(bowl, count=150, seed=seed):
        value = trial.values["default"]
        if trial.number >= 10 and value > np.median(finished):
            trial = replace(trial, status="EARLY_STOPPED", values={}, reported={"default": value})
        else:
            finished.append(value)
        records.append(trial)
    assert sum(trial.status == "EARLY_STOPPED" for trial in records) > 40
    assert health_notes(table(records)) == []


def test_random_search_is_not_blamed_for_being_random() -> None:
    assert health_notes(table(searched(bowl, random=True)), learns=False) == []


def test_trials_of_the_user_are_no_part_of_the_search() -> None:
    """The user's own trials at the beginning are very good: that the tuner's are worse says nothing."""
    good = [
        TrialRecord(n, "SUCCEEDED", {"x": 0.3, "y": 0.6}, {"default": 0.0}, source="initial")
        for n in range(10)
    ]
    assert health_notes(table([*good, *searched(bowl)])) == []


@pytest.mark.parametrize(
    ("best", "end"),
    [(-0.2, "lower end, 0.001; widen it to 0.0001"), (1.2, "upper end, 10; widen it to 100")],
    ids=["lower", "upper"],
)
def test_range_is_cut_off_on_its_own_scale(best: float, end: str) -> None:
    space = {"rate": {"_type": "loguniform", "_value": [1e-3, 10]}, "y": UNIT}

    def function(parameters: dict[str, Any]) -> float:
        return ((math.log10(parameters["rate"]) + 3) / 4 - best) ** 2 + (parameters["y"] - 0.4) ** 2

    (note,) = health_notes(table(searched(function, space), space))
    assert (
        note
        == f"the range of rate may be cut off: the best trials crowd at its {end} if such values make sense"
    )


@pytest.mark.parametrize("seed", range(2))
def test_search_that_finds_the_end_of_a_range_early_and_then_explores_is_not_like_random(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = [*rng.random(10), *(1 - 0.05 * rng.random(20)), *rng.random(40)]
    records = [
        TrialRecord(number, "SUCCEEDED", {"x": x, "y": rng.random()}, {"default": -x})
        for number, x in enumerate(places)
    ]
    (note, *others) = health_notes(table(records))
    assert note.startswith("the range of x may be cut off")
    assert RANDOM not in others


@pytest.mark.parametrize(
    "one",
    [
        {"_type": "randint", "_value": [0, 2]},
        {"_type": "choice", "_value": [0, 1]},
        {"_type": "quniform", "_value": [0, 1, 1]},
        {"_type": "normal", "_value": [-3, 1]},
    ],
    ids=["two integers", "choice", "two steps", "no bounds"],
)
def test_what_has_no_range_to_widen_is_not_cut_off(one: dict[str, Any]) -> None:
    function: Function = lambda parameters: parameters["x"] + (parameters["y"] - 0.4) ** 2  # noqa: E731
    notes = health_notes(table(searched(function, {"x": one, "y": UNIT}), {"x": one, "y": UNIT}))
    assert not [note for note in notes if "cut off" in note]


def test_integer_with_several_values_can_be_cut_off() -> None:
    space = {"n": {"_type": "randint", "_value": [1, 9]}, "y": UNIT}
    found = searched(lambda parameters: -parameters["n"] + (parameters["y"] - 0.4) ** 2, space)
    assert health_notes(table(found, space))[0].endswith(
        "upper end, 8; widen it to 10 if such values make sense"
    )


def test_parameter_that_does_not_matter_is_named() -> None:
    space = {**SPACE, "z": UNIT}
    records = searched(bowl, space, 200)
    (note,) = health_notes(table(records, space))
    assert note.startswith("z does not matter: it explains at most ")
    best = min(records, key=lambda trial: trial.values["default"])
    assert note.endswith(f" of the variance; fix it at {best.parameters['z']:.6g}, and the search is smaller")


def test_parameter_that_matters_near_the_best_trials_only_is_not_useless() -> None:
    """With relu the loss ends at 0.3 and with the others at 0.1, which explains next to nothing of all losses."""
    space = {**SPACE, "act": {"_type": "choice", "_value": ["relu", "tanh", "gelu"]}}

    def floored(floor: float) -> Function:
        return lambda one: max(0.1 + 5 * bowl(one), floor if one["act"] == "relu" else 0.1)

    def notes(floor: float) -> list[str]:
        return health_notes(table(searched(floored(floor), space, 200, random=True), space), learns=False)

    assert notes(0.3) == []
    (note,) = notes(0.1)
    assert note.startswith("act does not matter: it explains at most ")


def test_parameter_that_matters_only_with_another_is_not_useless() -> None:
    def function(parameters: dict[str, Any]) -> float:
        return parameters["w"] + math.copysign(1, (parameters["x"] - 0.5) * (parameters["y"] - 0.5))

    space = {**SPACE, "w": UNIT}
    assert not any(
        "does not matter" in note for note in health_notes(table(searched(function, space, 150), space))
    )


def test_nested_parameter_is_never_called_useless() -> None:
    options = [{"_name": "plain"}, {"_name": "deep", "k": UNIT}]
    space = {**SPACE, "net": {"_type": "choice", "_value": options}}
    assert health_notes(table(searched(bowl, space, 200), space)) == []


def test_few_trials_and_several_objectives_have_no_notes() -> None:
    records = searched(noise(1))
    assert health_notes(table(records[:39])) == []
    both = [Objective(name="default"), Objective(name="other")]
    assert health_notes(table(records, SPACE, *both)) == []


def test_trials_that_violate_a_limit_or_failed_are_not_the_best() -> None:
    """The lowest losses are at the upper end of x, and no trial there keeps the limit."""
    space = {**SPACE}
    limit = Objective(name="ms", direction=None, at_most=0.5)
    parsed, rng = SearchSpace.parse(space), np.random.default_rng(0)
    points = [parsed.sample(rng) for _ in range(150)]
    records = [
        TrialRecord(
            n,
            "SUCCEEDED",
            point,
            {"default": abs(point["x"] - 0.4) - 5 * (point["x"] > 0.9), "ms": point["x"]},
        )
        for n, point in enumerate(points)
    ]
    free = health_notes(table(records), learns=False)
    assert [note for note in free if "cut off" in note] == []
    assert [
        note for note in health_notes(table(records, limits=[limit]), learns=False) if "cut off" in note
    ] == []
