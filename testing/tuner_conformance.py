"""The conformance suite of tuners: what every tuner must do, as pytest tests to inherit.

In a test file of a plug-in::

    from pitchpipe.testing import TunerConformance
    from my_package import MyTuner

    class TestMyTuner(TunerConformance):
        def make(self, seed):
            return MyTuner(seed=seed)

Class attributes say what the tuner claims: `spaces` are the search spaces it supports, such as
`{"uniform": SPACES["uniform"]}`, `seeded` is False for a tuner without a seed, `exhausts` is False for one that may
repeat a point, and `constrained` is None for one that ignores constraints. Tests of what it does not claim are skipped,
each with the reason; so are those on a space with types of parameters that `spaces` do not have.
Each space is tried once; all tests that need one run on those in `DIFFERENT`, or on all if the tuner supports none of
them.
`small`, `constrained` and `corner` are spaces for single tests, and `is_point` may be overridden. Override
`make_directed` for a tuner that can maximise; lower `trials` and `many_results` for one with slow suggestions.
"""

# ruff: noqa: D102 - the names of the tests are sentences

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import cloudpickle
import numpy as np
import pytest

from ..protocol import JsonObject
from ..search_space import (
    SearchSpace,
    choice,
    lognormal,
    lograndint,
    loguniform,
    normal,
    qlognormal,
    qloguniform,
    qnormal,
    quniform,
    randint,
    uniform,
)
from ..tuners import NoMoreTrialError, Tuner

#: Search spaces by name: every type, nested choices, ranges of one value, mixtures.
SPACES: dict[str, JsonObject] = {
    "choice": {"x": choice(["a", 1, 2.5, True, None, [1, 2], {"k": 1}])},
    "randint": {"x": randint(-3, 9)},
    "lograndint": {"x": lograndint(1, 1000), "y": lograndint(3, 5)},
    "uniform": {"x": uniform(-1, 2)},
    "quniform": {"x": quniform(2, 10, 5), "y": quniform(0, 1, 0.1)},
    "loguniform": {"x": loguniform(1e-6, 1)},
    "qloguniform": {"x": qloguniform(1, 1000, 1)},
    "normal": {"x": normal(1, 2)},
    "qnormal": {"x": qnormal(10, 5, 2)},
    "lognormal": {"x": lognormal(0, 1)},
    "qlognormal": {"x": qlognormal(2, 1, 1)},
    "one value": {"x": uniform(1, 1), "y": randint(4, 5), "z": choice(["only"]), "w": 7},
    "mixed": {"x": uniform(0, 1), "c": choice("abc"), "n": randint(0, 5), "lr": loguniform(1e-5, 1)},
    "nested": {
        "layer": choice(
            [
                {"_name": "Empty"},
                {"_name": "Conv", "kernel": choice([1, 3, 5]), "rate": uniform(0, 1)},
                {
                    "_name": "Block",
                    "kind": choice([{"_name": "A"}, {"_name": "B", "z": qnormal(0, 3, 1)}]),
                    "width": randint(1, 9),
                },
            ]
        ),
        "lr": loguniform(1e-4, 1),
    },
    "three deep": {
        "top": choice(
            [
                {
                    "_name": "in",
                    "middle": choice(
                        [
                            {
                                "_name": "in",
                                "low": choice(
                                    [
                                        {"_name": "x", "u": uniform(-1, 1), "c": choice([1, "a"])},
                                        {"_name": "n", "n": qloguniform(1, 64, 1)},
                                    ]
                                ),
                            },
                            {"_name": "out", "z": normal(0, 1)},
                        ]
                    ),
                    "side": randint(0, 4),
                },
                {"_name": "out"},
            ]
        )
    },
    "large": {f"x{i}": randint(0, 1000) for i in range(8)},
}

#: The spaces that differ most, in how many points there are and how a point is made: a few options of any type; a range
#: without limits, in steps; several dimensions, one of them logarithmic; conditions within conditions. Each other space
#: repeats one of these ways with other numbers.
DIFFERENT = ("choice", "qnormal", "mixed", "three deep")

MANY = 4_000
IN_SPACE = "these suggestions are outside the search space"
SAME = "with one seed, the same calls give the same suggestions"
MINE = "a trial may change its parameters: with one seed, later suggestions do not depend on that"
ONCE = "each point of the space is suggested, and none twice"
QUICK = "the tuner takes too long: the time for a result grows with the number of results"
CORNER = 50  # trials by which a tuner that repeats the best point has found it


def value_of(parameters: Any) -> float:
    """Return an objective of any parameters: the sum of the numbers in them."""
    if isinstance(parameters, dict):
        return sum(value_of(item) for item in parameters.values())
    number = isinstance(parameters, int | float) and not isinstance(parameters, bool)
    return float(parameters) if number else 0.5


def run(tuner: Tuner, count: int, first: int = 0, sign: float = 1.0) -> list[Any]:
    """Run up to `count` trials one after the other; return their parameters. Values are multiplied by `sign`."""
    points = []
    for parameter_id in range(first, first + count):
        try:
            point = tuner.generate_parameters(parameter_id)
        except NoMoreTrialError:
            break
        points.append(point)
        tuner.receive_trial_result(parameter_id, point, sign * value_of(point))
        tuner.trial_end(parameter_id, True)
    return points


class TunerConformance:
    """The suite: inherit it as `class Test...` and override `make`."""

    spaces: ClassVar[dict[str, JsonObject]] = SPACES
    #: A space with few points, and how many; None when the tuner cannot have one.
    small: ClassVar[tuple[JsonObject, int] | None] = ({"c": choice(["a", "b", None]), "n": randint(0, 4)}, 12)
    #: A space with constraints between its parameters; None when the tuner ignores them.
    constrained: ClassVar[tuple[JsonObject, list[str]] | None] = (
        {"a": randint(0, 20), "b": uniform(0, 20)},
        ["a < b", "a + b <= 25"],
    )
    #: A space with a continuous parameter, whose best point is in a corner; None when the tuner cannot have one.
    corner: ClassVar[JsonObject | None] = {"x": uniform(0, 1), "c": choice([0, 1, "a"]), "n": randint(1, 9)}
    seeded: ClassVar[bool] = True
    exhausts: ClassVar[bool] = True
    #: How many trials a test runs, about.
    trials: ClassVar[int] = 40
    #: How many trials are run one after the other by the test of that.
    many_results: ClassVar[int] = MANY

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Skip the tests of what the subclass does not claim."""
        super().__init_subclass__(**kwargs)
        for name, reason in cls._not_claimed():
            if getattr(cls, name) is getattr(TunerConformance, name):  # not one of the subclass
                setattr(cls, name, skipped(reason))

    @classmethod
    def _not_claimed(cls) -> Iterator[tuple[str, str]]:
        """Yield the name of each test that is skipped, and why."""
        if not cls.seeded:
            yield "test_the_same_seed_gives_the_same_suggestions", "the tuner has no seed: `seeded` is False"
        for name in (
            "test_a_small_space_is_visited_once_and_ends",
            "test_a_small_space_is_visited_once_by_parallel_trials",
            "test_imported_points_of_a_small_space_are_not_suggested",
        ):
            if reason := cls._why_not("small", cls.small and cls.small[0], is_once=True):
                yield name, reason
        if reason := cls._why_not("corner", cls.corner, is_once=True):
            yield "test_no_point_is_suggested_twice", reason
        if reason := cls._why_not("constrained", cls.constrained and cls.constrained[0]):
            yield "test_constraints_are_met", reason
        if cls.make_directed is TunerConformance.make_directed:
            yield "test_the_greatest_is_the_least_of_the_negated", "`make_directed` is not defined"

    @classmethod
    def _why_not(cls, name: str, space: JsonObject | None, *, is_once: bool = False) -> str:
        """Say why the tests of one of the single spaces are skipped; empty if they are not."""
        if space is None:
            return f"`{name}` is None"
        if is_once and not cls.exhausts:
            return "the tuner may repeat a point: `exhausts` is False"
        foreign = _types(space) - set().union(*map(_types, cls.spaces.values()))
        return f"`spaces` have no {' and no '.join(sorted(foreign))}, as `{name}` has" if foreign else ""

    def make(self, seed: int) -> Tuner:
        """Return a new tuner; one without a seed ignores it."""
        raise NotImplementedError

    def make_directed(self, seed: int, optimize_mode: str) -> Tuner:
        """Return a new tuner that minimises or maximises; without this method the direction is not tested."""
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test that asks for `each_space` once for each of them, and for `space` on the most different ones."""
        different = [name for name in self.spaces if name in DIFFERENT] or list(self.spaces)
        for fixture, names in (("space", different), ("each_space", list(self.spaces))):
            if fixture in metafunc.fixturenames:
                metafunc.parametrize(fixture, [self.spaces[name] for name in names], ids=names)

    def started(self, space: Any, seed: int = 1, constraints: list[str] | None = None) -> Tuner:
        """Return a tuner that has its search space."""
        tuner = self.make(seed)
        if constraints:
            tuner.update_constraints(constraints)
        tuner.update_search_space(copy.deepcopy(space))
        return tuner

    def outside(self, space: Any, points: Iterable[Any]) -> list[Any]:
        """Return the points that do not belong to a space."""
        return [point for point in points if not self.is_point(space, point)]

    def is_point(self, space: Any, parameters: Any) -> bool:
        """Return whether parameters belong to a space."""
        return not SearchSpace.parse(space).validate(parameters)

    def test_each_space_is_searched(self, each_space: Any) -> None:
        points = [point for point in self._searched_with_failures(each_space) if point is not None]
        again = run(self.started(each_space), 5)
        assert again, "the tuner suggests at least one point"
        assert again == points[:5] or not self.seeded, SAME
        assert json.loads(json.dumps(points)) == points, (
            "parameters are what JSON has: dicts with text as keys, lists, text, numbers, true, false and null"
        )
        assert self.outside(each_space, points) == [], IN_SPACE

    def test_suggestions_belong_to_the_receiver(self, space: Any) -> None:
        tuner, untouched = self.started(space), self.started(space)
        for parameter_id in range(5):
            points = [_next(each, parameter_id) for each in (tuner, untouched)]
            assert points[0] == points[1] or not self.seeded, MINE
            if isinstance(points[0], dict):
                points[0].clear()

    def test_a_batch_is_a_list_of_points(self, space: Any) -> None:
        points = self.started(space).generate_multiple_parameters(list(range(7)))
        assert isinstance(points, list), "generate_multiple_parameters returns a list"
        assert 1 <= len(points) <= 7, (
            "of several points asked for, generate_multiple_parameters returns at least one and no more than these"
        )
        assert self.outside(space, points) == [], IN_SPACE

    def test_the_same_seed_gives_the_same_suggestions(self, space: Any) -> None:
        first, second = (self._searched_with_failures(space) for _ in range(2))
        assert first == second, SAME

    def _searched_with_failures(self, space: Any) -> list[Any]:
        tuner = self.started(space)
        points = run(tuner, self.trials)
        for parameter_id, value in enumerate((None, math.nan, 1.0), self.trials):
            points.append(_next(tuner, parameter_id))
            if value is not None and points[-1] is not None:
                tuner.receive_trial_result(parameter_id, points[-1], value)
            tuner.trial_end(parameter_id, value is not None)
        return [*points, _next(tuner, self.trials + 3)]

    def test_a_pickled_tuner_continues_as_the_original(self, space: Any) -> None:
        tuner = self.started(space)
        done = len(run(tuner, self.trials // 2))
        _next(tuner, 100)  # a trial that runs while the checkpoint is written
        restored = cloudpickle.loads(cloudpickle.dumps(tuner))
        again, points = (run(each, self.trials // 2, first=done) for each in (restored, tuner))
        assert again == points, "a tuner that was pickled and restored suggests what the original does"

    def test_arguments_are_not_changed(self, space: Any) -> None:
        given = copy.deepcopy(space)
        tuner = self.make(1)
        tuner.update_search_space(given)
        point = tuner.generate_parameters(0)
        data = [{"parameter": copy.deepcopy(point), "value": {"default": 1.0, "other": 2}}]
        results = {"default": 0.5, "other": [1]}
        kept = copy.deepcopy((point, data, results))
        tuner.receive_trial_result(0, point, results)
        tuner.import_data(data)
        run(tuner, self.trials // 3, first=1)
        assert given == space, "the tuner does not change the search space that it gets"
        assert (point, data, results) == kept, (
            "the tuner does not change the parameters, the imported data and the results that it gets"
        )

    def test_nan_infinite_and_failed_trials_are_survived(self, space: Any) -> None:
        tuner = self.started(space)
        values = [math.nan, math.inf, -math.inf, None, {"default": math.nan}, 1e308, 0]
        for parameter_id in range(self.trials * 3 // 2):
            point = _next(tuner, parameter_id)
            value = values[parameter_id % len(values)]
            if point is None:
                break
            if value is not None:
                tuner.receive_trial_result(parameter_id, point, value)
            tuner.trial_end(parameter_id, value is not None)
            assert self.is_point(space, point), f"{point}: {IN_SPACE}"

    def test_only_failures_are_survived(self, space: Any) -> None:
        tuner = self.started(space)
        for parameter_id in range(self.trials):
            if _next(tuner, parameter_id) is not None:
                tuner.trial_end(parameter_id, False)

    def test_suggestions_without_any_result(self, space: Any) -> None:
        points = self.started(space).generate_multiple_parameters(list(range(self.trials * 3 // 2)))
        assert self.outside(space, points) == [], IN_SPACE

    def test_results_in_another_order_than_suggestions(self, space: Any) -> None:
        tuner = self.started(space)
        running: dict[int, Any] = {}
        for parameter_id in range(self.trials * 3 // 2):
            point = _next(tuner, parameter_id)
            if point is not None:
                running[parameter_id] = point
            if len(running) == 8:
                newest = max(running)
                tuner.receive_trial_result(newest, running[newest], value_of(running.pop(newest)))
                tuner.trial_end(newest, True)
        assert self.outside(space, running.values()) == [], IN_SPACE

    def test_late_second_and_foreign_results_are_survived(self, space: Any) -> None:
        tuner = self.started(space)
        points = run(tuner, self.trials // 3)
        tuner.trial_end(0, False)
        tuner.receive_trial_result(0, points[0], 3.0)  # after its end, and for the second time
        tuner.receive_trial_result(999, points[-1], 2.0)  # an id that was never given out
        tuner.receive_trial_result(1000, {"no": "such parameters"}, 2.0, customized=True)
        tuner.trial_end(999, True)
        tuner.trial_end(1001, False)
        assert self.outside(space, run(tuner, self.trials // 4, first=100)) == [], IN_SPACE

    def test_imported_data_is_taken(self, space: Any) -> None:
        points = run(self.started(space, seed=2), self.trials // 3)
        data: list[JsonObject] = [{"parameter": point, "value": value_of(point)} for point in points]
        data[0]["value"] = {"default": 1.0}
        data += [{"parameter": {"x": "nonsense"}, "value": 1}, {"parameter": points[0], "value": None}]
        tuner = self.started(space)
        tuner.import_data(data)
        assert self.outside(space, run(tuner, self.trials // 2)) == [], IN_SPACE

    def test_an_empty_import_changes_nothing(self, space: Any) -> None:
        tuner = self.started(space)
        tuner.import_data([])
        again, points = (run(each, self.trials // 4) for each in (tuner, self.started(space)))
        assert again == points or not self.seeded, "an import of nothing changes no suggestion"

    def test_the_space_may_change_on_the_way(self, space: Any) -> None:
        other = self.spaces[next(iter(self.spaces))]
        tuner = self.started(other)
        run(tuner, self.trials // 3)
        tuner.update_search_space(copy.deepcopy(space))
        tuner.trial_end(3, False)
        points = run(tuner, self.trials // 3, first=self.trials // 3)
        assert self.outside(space, points) == [], IN_SPACE

    def test_a_small_space_is_visited_once_and_ends(self) -> None:
        assert self.small is not None, "the test is skipped without it"
        space, size = self.small
        tuner = self.started(space)
        points = run(tuner, size)
        assert len({json.dumps(point, sort_keys=True) for point in points}) == size, ONCE
        assert _next(tuner, size) is None, (
            "when all points were suggested, generate_parameters raises NoMoreTrialError"
        )
        assert tuner.generate_multiple_parameters([size + 1, size + 2]) == [], (
            "when all points were suggested, generate_multiple_parameters returns an empty list"
        )

    def test_a_small_space_is_visited_once_by_parallel_trials(self) -> None:
        assert self.small is not None, "the test is skipped without it"
        space, size = self.small
        points = self.started(space).generate_multiple_parameters(list(range(size + 5)))
        assert len(points) == len({json.dumps(point, sort_keys=True) for point in points}) == size, ONCE

    @pytest.mark.parametrize("parallel", [1, 2])
    def test_no_point_is_suggested_twice(self, parallel: int) -> None:
        tuner, points = self.started(self.corner), []
        for first in range(0, CORNER, parallel):
            batch = tuner.generate_multiple_parameters(list(range(first, first + parallel)))
            for parameter_id, point in enumerate(batch, first):
                tuner.receive_trial_result(parameter_id, point, value_of(point))
                tuner.trial_end(parameter_id, True)
            points += batch
        assert len(points) == len({json.dumps(point, sort_keys=True) for point in points}), ONCE

    def test_imported_points_of_a_small_space_are_not_suggested(self) -> None:
        assert self.small is not None, "the test is skipped without it"
        space, size = self.small
        known = run(self.started(space, seed=3), size // 2)
        tuner = self.started(space)
        tuner.import_data([{"parameter": point, "value": 0} for point in known])
        points = run(tuner, size)
        assert len(points) == size - len(known), (
            "imported points count as suggested; all others are suggested"
        )
        assert [point for point in points if point in known] == [], "imported points are not suggested again"

    def test_constraints_are_met(self) -> None:
        assert self.constrained is not None, "the test is skipped without it"
        space, constraints = self.constrained
        points = run(self.started(space, constraints=constraints), self.trials)
        assert points, "the tuner suggests at least one point"
        model = SearchSpace.parse(space, constraints)
        assert [model.violations(point) for point in points if model.violations(point)] == [], (
            "suggestions meet the constraints"
        )

    def test_the_greatest_is_the_least_of_the_negated(self, space: Any) -> None:
        suggested = []
        for mode, sign in (("minimize", 1.0), ("maximize", -1.0)):
            tuner = self.make_directed(1, mode)
            tuner.update_search_space(copy.deepcopy(space))
            suggested.append(run(tuner, self.trials // 2, sign=sign))
        assert suggested[0] == suggested[1], (
            "maximising values suggests what minimising the negated values does"
        )

    def test_many_imported_results_take_bounded_time(self) -> None:
        space = self.spaces[list(self.spaces)[-1]]
        rng, model = np.random.default_rng(0), SearchSpace.parse(space)
        points = [model.sample(rng) for _ in range(MANY)]
        tuner = self.started(space)
        started = time.process_time()
        tuner.import_data([{"parameter": point, "value": value_of(point)} for point in points])
        suggested = run(tuner, 5)
        # Generous: it tells linear from quadratic cost, not fast from slow.
        assert time.process_time() - started < 9, QUICK
        assert self.outside(space, suggested) == [], IN_SPACE

    def test_many_results_take_bounded_time(self) -> None:
        space = self.spaces[list(self.spaces)[-1]]
        tuner = self.started(space)
        started = time.process_time()
        points = run(tuner, self.many_results)
        assert time.process_time() - started < 9, QUICK  # generous, too
        assert points, "the tuner suggests at least one point"


def skipped(reason: str) -> Callable[[object], None]:
    """Return a test that is skipped with a reason."""

    @pytest.mark.skip(reason=reason)
    def test(_self: object) -> None:
        pass

    return test


def _types(space: object) -> set[str]:
    """Return the types of the parameters of a space, those within choices as well.

    >>> sorted(_types(SPACES["mixed"]))
    ['choice', 'loguniform', 'randint', 'uniform']
    """
    if isinstance(space, list):
        return set().union(*map(_types, space))
    if not isinstance(space, dict):
        return set()
    own = {space["_type"]} if isinstance(space.get("_type"), str) else set()
    return own.union(*map(_types, space.values()))


def _next(tuner: Tuner, parameter_id: int) -> Any:
    """Return a suggestion, or None when the space is exhausted."""
    try:
        return tuner.generate_parameters(parameter_id)
    except NoMoreTrialError:
        return None
