"""Auto: it learns on every kind of space, looks into every branch, and its parts do what they say."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import AutoTuner, NoMoreTrialError, RandomTuner
from pitchpipe.tuners.auto.local_search import Step
from pitchpipe.tuners.auto.model import Acquisition, AutoModel, FeatureTransform, Settings
from pitchpipe.tuners.auto.tuner import initial_design
from pitchpipe.tuners.base.embedding import Embedding
from pitchpipe.tuners.base.outcomes import Outcomes
from pitchpipe.tuners.base.search_prior import SearchPrior
from pitchpipe.tuners.models.regions import Box, Branch, mutants, principal_axes

from ..searches import LINE, PLANE, plane, search, started

BOWL = {f"x{i}": {"_type": "uniform", "_value": [-2, 2]} for i in range(5)}
TREE: dict[str, Any] = {
    "model": {
        "_type": "choice",
        "_value": [
            {"_name": "none"},
            {"_name": "tree", "depth": {"_type": "randint", "_value": [1, 20]}},
            {
                "_name": "net",
                "rate": {"_type": "loguniform", "_value": [1e-5, 1]},
                "width": {"_type": "choice", "_value": [16, 32, 64, 128]},
            },
        ],
    },
    "scale": {"_type": "choice", "_value": ["a", "b", "c"]},
}


def tree(point: dict[str, Any]) -> float:
    model, extra = point["model"], {"a": 0.3, "b": 0.0, "c": 0.6}[point["scale"]]
    if model["_name"] == "none":
        return 1.0 + extra
    if model["_name"] == "tree":
        return 0.5 + extra + 0.01 * abs(model["depth"] - 7)
    return extra + 0.3 * abs(math.log10(model["rate"]) + 3) + 0.1 * abs(math.log2(model["width"] / 64))


def made(space: dict[str, Any], seed: int = 0, **changes: Any) -> AutoTuner:
    tuner = AutoTuner("minimize", seed)
    tuner.settings = dataclasses.replace(Settings(), **changes)
    return started(tuner, space)


@pytest.mark.parametrize("type_name", ["uniform", "quniform", "randint"])
def test_the_low_end_of_a_wide_range_is_searched_on_its_scale(type_name: str) -> None:
    q = [1] if type_name == "quniform" else []
    space = {f"x{i}": {"_type": type_name, "_value": [1, 10_000, *q]} for i in range(3)}

    def decades(point: dict[str, float]) -> float:
        return sum(math.log10(point[f"x{i}"] / (50 * (i + 1))) ** 2 for i in range(3))

    bent, straight = (
        np.mean([min(search(made(space, seed, bend=bend), decades, 15)) for seed in range(4)])
        for bend in (Settings().bend, 0.0)
    )
    assert bent < straight / 2


@pytest.mark.parametrize(("space", "objective"), [(PLANE, plane), (TREE, tree)], ids=["plane", "tree"])
def test_it_is_far_better_than_random_search(space: dict[str, Any], objective: Any) -> None:
    ours = [min(search(made(space, seed), objective, 30)) for seed in range(3)]
    random = [min(search(started(RandomTuner(seed), space), objective, 30)) for seed in range(5)]
    assert np.median(ours) < 0.3 * np.median(random)


def test_the_first_suggestion_is_the_middle() -> None:
    point = made(PLANE).generate_parameters(0)
    assert (point["x"], point["y"]) == pytest.approx((0.0, 1.0))


def test_noise_does_not_make_it_return_to_one_lucky_point() -> None:
    rng, tuner = np.random.default_rng(0), made(PLANE)
    search(tuner, lambda point: plane(point) + 2 * rng.standard_normal(), 60)
    later = [tuner.generate_parameters(i) for i in range(60, 70)]
    assert np.median([plane(point) for point in later]) < 4


def test_every_branch_is_looked_into() -> None:
    tuner, seen = made(TREE), []
    search(tuner, lambda point: seen.append(point["model"]["_name"]) or tree(point), 30)
    assert min(seen.count(name) for name in ("none", "tree", "net")) >= 2


def test_running_trials_are_not_suggested_again() -> None:
    tuner = made(PLANE)
    search(tuner, plane, 20)
    points = tuner.generate_multiple_parameters(range(100, 108))
    distances = [
        math.hypot((a["x"] - b["x"]) / 10, math.log10(a["y"] / b["y"]) / 6)
        for i, a in enumerate(points)
        for b in points[:i]
    ]
    assert min(distances) > 0
    assert np.mean(distances) > 0.02


def test_a_region_of_failures_is_left() -> None:
    tuner = made(PLANE)
    failures = 0
    for i in range(50):
        point = tuner.generate_parameters(i)
        failed = point["x"] > 0
        failures += failed and i >= 25
        if not failed:
            tuner.receive_trial_result(i, point, plane(point))
        tuner.trial_end(i, not failed)
    assert failures < 15


@pytest.mark.parametrize("cause", ["USER_CANCELED", "INFRA"])
def test_cancelled_and_lost_trials_change_no_suggestion(cause: str) -> None:
    one, other = made(PLANE), made(PLANE)
    for tuner in (one, other):
        search(tuner, plane, 12)
        tuner.generate_parameters(50)
        tuner.trial_end_cause(50, cause)
    one.trial_end(50, False)
    other._running.pop(50)  # as if it had never run
    assert one.generate_parameters(51) == other.generate_parameters(51)


def test_failures_at_random_do_not_hide_the_best_region() -> None:
    late = list[float]()
    for seed in range(3):
        rng, tuner = np.random.default_rng(2 + seed), made(PLANE, seed)
        for i in range(60):
            point = tuner.generate_parameters(i)
            late += [plane(point)] if i >= 40 else []
            if rng.random() < 0.4:
                tuner.trial_end_cause(i, "USER_ERROR")
                tuner.trial_end(i, False)
            else:
                tuner.receive_trial_result(i, point, plane(point))
    assert np.median(late) < 0.1


def test_a_stopped_trial_is_neither_failed_nor_finished() -> None:
    tuner = made(PLANE)
    search(tuner, plane, 12)
    tuner.generate_parameters(50)
    tuner.trial_stopped(50)
    tuner.trial_end(50, False)
    assert len(tuner._results()) == 12
    tuner.update_search_space({**PLANE, "x": {"_type": "uniform", "_value": [-5, 5.5]}})
    assert len(tuner._results()) == 12


def test_a_finite_space_is_gone_through_once() -> None:
    space = {"a": {"_type": "randint", "_value": [0, 6]}, "b": {"_type": "choice", "_value": [1, 2]}}
    tuner = made(space)
    values = search(tuner, lambda point: abs(point["a"] - 4) + point["b"], 12)
    assert min(values) == 1
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(12)


def test_a_curved_valley_is_followed() -> None:
    space = {f"x{i}": {"_type": "uniform", "_value": [-2, 2]} for i in range(3)}

    def valley(point: dict[str, float]) -> float:
        x = [point[f"x{i}"] for i in range(3)]
        return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(x))

    tuner = made(space, near_set=40)
    rows = np.random.default_rng(0).uniform(-2, 2, (130, 3)).tolist()
    known = [dict(zip(space, row, strict=True)) for row in rows]
    tuner.import_data([{"parameter": point, "value": valley(point)} for point in known])
    assert min(search(tuner, valley, 40)) < 0.1 * min(map(valley, known))


def test_descending_counts_the_expected_loss_alone() -> None:
    units = np.linspace(0.1, 0.9, 9)[:, None] * np.ones(2)
    acquisition = acquisition_of(units, (units[:, 0] - 0.4) ** 2)
    descending = dataclasses.replace(acquisition, is_descending=True)
    assert descending.score(acquisition.units) == pytest.approx(-acquisition.means)


def bowl(point: dict[str, float]) -> float:
    return sum(10 ** (i / 2) * (point[f"x{i}"] - 0.06 * i) ** 2 for i in range(5))


def test_late_suggestions_get_closer_to_the_bottom_of_a_bowl() -> None:
    def end(seed: int, after: int) -> float:
        tuner = made(BOWL, seed, descend_after=after, near_set=40, local_share=0.6)
        rows = np.random.default_rng(seed).normal(0.1, 0.4, (100, 5)).clip(-2, 2).tolist()
        known = [dict(zip(BOWL, row, strict=True)) for row in rows]
        tuner.import_data([{"parameter": point, "value": bowl(point)} for point in known])
        return math.log10(min(search(tuner, bowl, 30)))

    assert end(seed=0, after=10) - end(seed=0, after=1000) < -0.5


def test_a_descent_that_found_the_best_result_is_followed_by_another() -> None:
    tuner = made(BOWL, 1, descend_after=40, near_set=30, local_share=0.0, model_free_share=0.0)
    search(tuner, bowl, 40)
    assert tuner._step is None
    won = Step(centre=np.full(5, 0.5), is_descent=True, best=1.0)
    tuner._local.finished(won, won.centre, is_best=True)
    tuner.generate_parameters(40)
    assert tuner._step is not None
    assert tuner._step.is_descent


def test_a_descent_has_twice_as_many_results_to_choose_from_as_its_model_takes() -> None:
    tuner = made(BOWL, near_set=40)
    points = np.random.default_rng(0).uniform(-2, 2, (150, 5))
    tuner.import_data(
        [{"parameter": dict(zip(BOWL, row, strict=True)), "value": 1.0} for row in points.tolist()]
    )
    known = tuner._known()
    assert len(tuner._nearest(known, is_descent=False).rows) == 40
    assert len(tuner._nearest(known, is_descent=True).rows) == 2 * 3 * 21  # a quadratic function of 5 numbers
    tuner.settings = dataclasses.replace(tuner.settings, largest_set=50)
    assert len(tuner._nearest(known, is_descent=True).rows) == 2 * 50


def test_workers_do_not_all_descend_to_one_point() -> None:
    tuner, nearest = made(BOWL, 1, descend_after=60, near_set=40, local_share=1.0), []
    search(tuner, bowl, 60)
    for first in range(60, 84, 8):
        batch = {i: tuner.generate_parameters(i) for i in range(first, first + 8)}
        points = np.array([[point[name] for name in BOWL] for point in batch.values()])
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        nearest.append(apart[~np.eye(8, dtype=bool)].min())
        for i, point in batch.items():
            tuner.receive_trial_result(i, point, bowl(point))
            tuner.trial_end(i, True)
    assert np.median(nearest) > 0.003


def test_distances_of_the_embedding_follow_the_tree() -> None:
    space = SearchSpace.parse(TREE)
    embedding = Embedding.of(space)

    def feature(model: dict[str, Any], scale: str = "a") -> Any:
        return embedding.features(space.encode({"model": model, "scale": scale})[None])[0]

    def distance(left: Any, right: Any) -> float:
        return float(np.linalg.norm(left - right))

    net = feature({"_name": "net", "rate": 1e-3, "width": 16})
    assert distance(net, feature({"_name": "net", "rate": 1e-3, "width": 16}, "b")) == pytest.approx(1)
    near, far = (feature({"_name": "net", "rate": 1e-3, "width": w}) for w in (32, 128))
    assert distance(net, near) < distance(net, far)
    plain = Embedding.of(space, ordered_choices=False, shared_names=False)
    assert len(plain.groups) < len(embedding.groups)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("count", [1000, 1001, 40_000])
def test_options_of_a_wide_choice_are_about_equally_distant(count: int, nested: bool) -> None:
    options = {"_type": "choice", "_value": [f"set-{i}" for i in range(count)]}
    branches = {"_type": "choice", "_value": [{"_name": "none"}, {"_name": "some", "of": options}]}
    space = SearchSpace.parse({"m": branches} if nested else {"of": options})
    embedding = Embedding.of(space)
    assert len(embedding.groups) <= 1002
    assert embedding.scales == (2 if nested else 1)
    units = np.full((100, 2 if nested else 1), 0.75)
    units[:, -1] = (np.random.default_rng(0).permutation(count)[:100] + 0.5) / count
    features = embedding.features(units)
    distances = np.linalg.norm(features[:, None] - features, axis=2)
    assert distances[~np.eye(100, dtype=bool)] == pytest.approx(1.0, abs=0.2)
    assert np.array_equal(features, embedding.features(units))
    if nested:
        none = embedding.features(np.array([[0.25, np.nan]]))
        assert np.linalg.norm(features - none, axis=1) == pytest.approx(1.5**0.5)


@pytest.mark.parametrize(("space", "size"), [(PLANE, 0.1), (TREE, 1.0)], ids=["plane", "tree"])
def test_nearby_points_are_rotated_and_rescaled(space: dict[str, Any], size: float) -> None:
    embedding, rng = Embedding.of(SearchSpace.parse(space)), np.random.default_rng(0)
    units = embedding.snap(rng.random((40, embedding.layout.dimension)) * size)
    far, near = (FeatureTransform.of(embedding, units, is_near) for is_near in (False, True))
    assert np.array_equal(far.features(units), embedding.features(units))
    found = near.features(units)
    varied = found.std(axis=0) > 1e-9
    assert found[:, varied].std(axis=0).min() >= 12**-0.5 - 1e-9
    numbers = sorted({feature for _, feature in embedding.numbers})
    good = np.cov(embedding.features(units)[: 40 // 3][:, numbers], rowvar=False)
    turned = near.rotation.T @ good @ near.rotation
    assert turned == pytest.approx(np.diag(np.diag(turned)), abs=1e-9)


def test_one_name_in_two_branches_is_one_coordinate() -> None:
    rate = {"_type": "uniform", "_value": [0, 1]}
    space = SearchSpace.parse(
        {"m": {"_type": "choice", "_value": [{"_name": "a", "rate": rate}, {"_name": "b", "rate": rate}]}}
    )
    assert len(Embedding.of(space).numbers) == 2
    assert len({feature for _, feature in Embedding.of(space).numbers}) == 1
    assert len({feature for _, feature in Embedding.of(space, shared_names=False).numbers}) == 2


def test_choices_with_the_same_options_are_also_counted() -> None:
    layer, switch = ["conv", "pool", "skip"], [True, False]
    names = [("a", layer), ("b", layer), ("c", layer), ("x", switch), ("y", switch), ("z", switch)]
    space = SearchSpace.parse({name: {"_type": "choice", "_value": options} for name, options in names})
    embedding = Embedding.of(space)

    def features(*layers: str) -> Any:
        rest = {"x": True, "y": True, "z": True}
        return embedding.features(space.encode({**dict(zip("abc", layers, strict=True)), **rest})[None])[0]

    start, moved = features("conv", "pool", "skip"), features("skip", "conv", "pool")
    replaced = features("pool", "skip", "pool")
    assert len(start) == 3 * 3 + 3 * 2 + 3
    assert start[-3:] == pytest.approx(moved[-3:])
    assert np.linalg.norm(start - moved) < np.linalg.norm(start - replaced)
    two = SearchSpace.parse({name: {"_type": "choice", "_value": layer} for name in "ab"})
    assert not Embedding.of(two).counts


def test_points_are_snapped_to_what_a_trial_would_see() -> None:
    space = SearchSpace.parse(
        {
            "a": {"_type": "qloguniform", "_value": [1, 64, 1]},
            "b": {"_type": "quniform", "_value": [0, 1, 0.1]},
            "c": {"_type": "qnormal", "_value": [0, 2, 0.5]},
            "d": {"_type": "randint", "_value": [3, 9]},
        }
    )
    units = np.random.default_rng(0).random((50, 4))
    snapped = Embedding.of(space).snap(units.copy())
    expected = np.array([space.encode(space.decode(row)) for row in units])
    assert snapped == pytest.approx(expected, abs=1e-7)


def test_mutants_are_points_of_the_space_and_differ() -> None:
    space = SearchSpace.parse(TREE)
    embedding = Embedding.of(space)
    point = space.encode({"model": {"_name": "tree", "depth": 4}, "scale": "b"})
    changed = mutants(np.random.default_rng(0), embedding, point[None], 100)
    assert all(not space.validate(space.decode(row)) for row in changed)
    assert not any(np.array_equal(row, point, equal_nan=True) for row in changed)


def test_regions_keep_to_themselves() -> None:
    rng, space = np.random.default_rng(0), SearchSpace.parse(TREE)
    embedding = Embedding.of(space)
    best = space.encode({"model": {"_name": "net", "rate": 1e-3, "width": 64}, "scale": "b"})[None]
    branch = Branch(column=0, option=1)
    units = branch.change(rng, embedding, branch.start(rng, embedding, best), 2)
    assert branch.contains(embedding.layout, units).all()
    plane_space = Embedding.of(SearchSpace.parse(PLANE))
    centre = np.array([0.9, 0.5])
    box = Box(centre, 0.2, principal_axes(plane_space, rng.random((9, 2))))
    inside = box.change(rng, plane_space, box.start(rng, plane_space, best), 2)
    assert np.abs(inside - centre).max() <= 0.2 + 1e-12
    assert inside.max() <= 1


def test_axes_point_along_the_points() -> None:
    rng = np.random.default_rng(0)
    along = rng.standard_normal((50, 1)) * 0.1
    units = 0.5 + np.hstack([along, along]) + 0.001 * rng.standard_normal((50, 2))
    axes = principal_axes(Embedding.of(SearchSpace.parse(PLANE)), units)
    assert np.abs(axes[:, 1]) == pytest.approx([0.5**0.5] * 2, abs=0.05)
    assert np.linalg.norm(axes[:, 0]) < 0.05


def test_the_design_is_spread_over_options_and_ranges() -> None:
    space = SearchSpace.parse(TREE)
    settings = Settings(design_points=9, centre_first=False)
    design = initial_design(np.random.default_rng(0), Embedding.of(space), SearchPrior({}), settings)
    names = [space.decode(row)["model"]["_name"] for row in design]
    assert [names.count(name) for name in ("none", "tree", "net")] == [3, 3, 3]
    numbers = design[:, Embedding.of(space).layout.numeric]
    assert 0.15 - 0.05 < np.nanmin(numbers) < 0.3 < 0.7 < np.nanmax(numbers) < 0.85 + 0.05


def in_levels(point: dict[str, Any]) -> float:
    """Return a level of the plane: one point in 3,000 is on the best one, one in 30 on the next."""
    return float(np.searchsorted((0.005, 0.5, 2, 4, 8, 16), plane(point)))


def test_search_leaves_a_level_that_many_points_share() -> None:
    def tied(**changes: Any) -> int:
        tuners = [made(PLANE, seed, plateau_share=2.0, **changes) for seed in (0, 2)]
        found = [search(tuner, in_levels, 24) for tuner in tuners]
        return sum(values.count(min(values)) for values in found)

    assert tied() < 0.7 * tied(least_gain=0.0)


def test_least_gain_is_half_a_step_where_the_best_tie_and_nothing_elsewhere() -> None:
    assert least_gain(np.array([0.0, 0.0, 1.0, 4.0])) > 0
    assert least_gain(np.array([0.0, 0.5, 1.0, 4.0])) == 0.0
    assert least_gain(np.zeros(4)) == 0.0


def least_gain(found: np.ndarray) -> float:
    return acquisition_of(np.linspace(0.1, 0.9, len(found))[:, None] * np.ones(2), found).least


def acquisition_of(units: np.ndarray, found: np.ndarray) -> Acquisition:
    model = AutoModel(Embedding.of(SearchSpace.parse(PLANE)), Settings())
    return model.acquisition(units, found, pending=units[:0], suggested=len(found), near=False)


def test_points_of_an_acquisition_within_a_branch_come_first_and_all_keep_their_means() -> None:
    space = SearchSpace.parse({"kind": {"_type": "choice", "_value": ["a", "b"]}, **LINE})
    embedding = Embedding.of(space)
    points = [space.encode({"kind": "ab"[number % 2], "x": number / 8}) for number in range(8)]
    units, losses = np.array(points), np.arange(8.0)
    model = AutoModel(embedding, Settings())
    whole = model.acquisition(units, losses, pending=units[:0], suggested=8, near=False)
    branch = Branch(int(embedding.layout.choices[0]), 1)
    inside = whole.within(branch)
    assert branch.contains(embedding.layout, inside.units).tolist() == [True] * 4 + [False] * 4
    means = {
        tuple(point): mean for point, mean in zip(whole.units.tolist(), whole.means.tolist(), strict=True)
    }
    assert [means[tuple(point)] for point in inside.units.tolist()] == inside.means.tolist()
    assert inside.best == inside.means[0] == inside.means[:4].min()


def test_model_free_step_changes_any_of_the_tied_results() -> None:
    tuner = made(LINE, model_free_share=1.0)
    search(tuner, lambda point: 0.0, 60)
    found = [tuner.generate_parameters(i)["x"] for i in range(60, 80)]
    assert max(found) - min(found) > 0.5


@pytest.mark.parametrize("outcome", ["result", "failure"])
def test_suggestion_after_very_many_results_looks_at_the_best_and_the_newest(
    outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, sizes, features = np.random.default_rng(0), list[int](), Embedding.features

    def counted(embedding: Embedding, units: Any) -> Any:
        sizes.append(len(units))
        return features(embedding, units)

    points = [{"x": x, "y": 10.0**y} for x, y in rng.uniform([-5, -3], [5, 3], (12_000, 2)).tolist()]
    tuner = made(PLANE)
    tuner.import_data([{"parameter": point, "value": plane(point)} for point in points])
    if outcome == "failure":
        tuner.generate_parameters(0)
        tuner.trial_end_cause(0, "USER_ERROR")
        tuner.trial_end(0, False)
    monkeypatch.setattr(Embedding, "features", counted)
    found = search(tuner, plane, 12, first=1)
    assert max(sizes) <= 5_000
    assert min(found) < min(map(plane, points))


def test_suggestion_by_several_objectives_ranks_the_best_and_the_newest_of_very_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes, ranking = list[int](), Outcomes.ranking

    def counted(outcomes: Outcomes, rows: Any = None) -> Any:
        found = ranking(outcomes, rows)
        sizes.append(len(found[0]))
        return found

    monkeypatch.setattr(Outcomes, "ranking", counted)
    goals = [{"name": name, "direction": "minimize"} for name in ("up", "down")]
    tuner = started(AutoTuner(seed=1), LINE, objectives=goals)
    places = np.random.default_rng(0).random((6_000, 2)).tolist()
    tuner.import_data(
        [{"parameter": {"x": x}, "value": {"up": 1 + x + y, "down": 2 - x + y}} for x, y in places]
    )
    search(tuner, lambda point: {"up": 0.5 + point["x"], "down": 1.5 - point["x"]}, 3)
    tuner.generate_parameters(3)
    assert sizes[0] == 6_000
    assert all(size <= 5_001 for size in sizes[1:])
    assert set(tuner._history.ranked[:3].tolist()) == {6_000, 6_001, 6_002}
    losses = tuner._history.losses
    assert losses[0] < 1 <= losses[3]
