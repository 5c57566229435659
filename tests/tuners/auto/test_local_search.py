"""Near the best point: which way has its turn, and how large its box is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners.auto.local_search import DescentRegion, LocalSearch, Step, TrustRegion
from pitchpipe.tuners.base.embedding import Layout

NUMBER = {"_type": "uniform", "_value": [0, 1]}
CHOICE: dict[str, Any] = {"_type": "choice", "_value": ["a", "b", "c", "d"]}
NONE = np.arange(0)
CENTRE = np.array([0.5, math.nan, 0.9])  # a number, an inactive one, a choice


def searching(**space: dict[str, Any]) -> LocalSearch:
    return LocalSearch(Layout.of(SearchSpace.parse(space or {"x": NUMBER, "y": NUMBER, "z": CHOICE})))


def step(search: LocalSearch, *, is_descent: bool, is_best: bool, to: Any = CENTRE) -> None:
    search.radius(is_descent=is_descent)
    search.suggested(0, Step(centre=CENTRE, is_descent=is_descent, best=1.0))
    found = search.pop(0)
    assert found is not None
    search.finished(found, np.array(to), is_best=is_best)


def test_the_trust_region_grows_shrinks_and_begins_again() -> None:
    region = TrustRegion(dimension=5)
    for _ in range(3):
        region.update(improved=True)
    assert region.radius == 0.8
    radii = set()
    for _ in range(100):
        region.update(improved=False)
        radii.add(region.radius)
    assert min(radii) < 0.01
    assert max(radii) == 0.8


def test_the_box_of_a_descent_shrinks_sooner_and_further_and_begins_again() -> None:
    region, radii = DescentRegion(), [0.4]
    for _ in range(38):
        region.update(improved=False, length=0.0)
        radii.append(region.radius)
    assert radii[:4] == [0.4, 0.4, 0.2, 0.2]
    assert min(radii) == pytest.approx(0.4 * 2.0**-18)
    assert radii[-1] == 0.4


@pytest.mark.parametrize(("length", "radius"), [(0.1, 0.2), (0.051, 0.2), (0.05, 0.1)])
def test_the_box_of_a_descent_grows_after_long_steps_that_succeed(length: float, radius: float) -> None:
    region = DescentRegion(radius=0.1)
    region.update(improved=True, length=length)
    assert region.radius == radius


@pytest.mark.parametrize("is_descent", [False, True])
def test_the_way_that_found_the_best_result_continues(is_descent: bool) -> None:
    search = searching()
    step(search, is_descent=is_descent, is_best=True)
    assert search.may_descend(NONE) is is_descent
    assert search.must_descend(NONE) is is_descent
    step(search, is_descent=is_descent, is_best=False)
    assert search.may_descend(NONE) is not is_descent
    assert not search.must_descend(NONE)


def test_there_is_one_descent_at_a_time() -> None:
    search = searching()
    step(search, is_descent=True, is_best=True)
    search.suggested(1, Step(centre=CENTRE, is_descent=True, best=1.0))
    search.suggested(2, Step(centre=CENTRE, is_descent=False, best=1.0))
    assert not search.may_descend(np.array([1, 2]))
    assert not search.must_descend(np.array([1, 2]))
    assert search.must_descend(np.array([2, 3]))  # the first was cancelled


def test_each_way_has_its_own_box_and_the_first_descent_begins_with_the_other() -> None:
    search = searching()
    for _ in range(4):
        step(search, is_descent=False, is_best=False)
    assert search.radius(is_descent=True) == 0.2
    for _ in range(2):
        step(search, is_descent=True, is_best=False)
    assert (search.radius(is_descent=False), search.radius(is_descent=True)) == (0.2, 0.1)


def test_the_length_of_a_step_is_that_of_its_numbers() -> None:
    search = searching()
    search.radius(is_descent=True)
    step(search, is_descent=True, is_best=True, to=[0.51, 0.9, 0.1])
    assert search.radius(is_descent=True) == 0.4
    step(search, is_descent=True, is_best=True, to=[0.8, math.nan, 0.9])
    assert search.radius(is_descent=True) == 0.8


def test_a_step_between_choices_alone_has_no_length() -> None:
    search = searching(x=CHOICE, y=CHOICE, z=CHOICE)
    step(search, is_descent=True, is_best=True)
    assert search.radius(is_descent=True) == 0.4


def test_the_box_among_integers_is_never_so_small_that_it_has_one_of_each() -> None:
    search = searching(
        x={"_type": "randint", "_value": [0, 10]}, y={"_type": "randint", "_value": [0, 50]}, z=CHOICE
    )
    radii = set()
    for _ in range(40):
        radii.add(search.radius(is_descent=True))
        step(search, is_descent=True, is_best=False)
    assert min(radii) == pytest.approx(0.4 / 2**5)
