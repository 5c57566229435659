"""Failed trials in groups, and the values of a parameter with which most trials fail."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.runner.trial import FailureKind
from pitchpipe.store.reading import ExperimentView
from pitchpipe.store.reading.failure_groups import failure_regions
from pitchpipe.telling.failed_trials import region_text

from ...stored import MadeExperiment, a_trial

Trials = list[tuple[str | None, dict[str, Any]]]


def trials(fails: Any, count: int = 40, kind: str = "OOM") -> Trials:
    rng = random.Random(3)
    points = [
        {"batch": rng.choice([64, 128, 256, 512, 1024]), "lr": rng.random(), "net": rng.choice("abc")}
        for _ in range(count)
    ]
    return [(kind if fails(point) else None, point) for point in points]


def texts(tried: Trials) -> list[str]:
    return [region_text(region) for region in failure_regions(tried)]


def test_each_kind_has_its_region() -> None:
    slow = trials(lambda point: point["lr"] < 0.25, kind="TIMEOUT")
    edge = min(point["lr"] for kind, point in slow if kind is None)
    big = trials(lambda point: point["batch"] > 256)
    well = [point for kind, point in (*big, *slow) if kind is None]
    wide = sum(kind == "OOM" for kind, _ in big)
    short = sum(kind == "TIMEOUT" for kind, _ in slow)
    all_wide = wide + sum(point["batch"] > 256 for point in well)
    all_short = short + sum(point["lr"] < edge for point in well)
    assert texts([*big, *slow]) == [
        f"{wide} of {all_wide} trials with batch above 256 fail (out of memory), other failures aside",
        f"{short} of {all_short} trials with lr below {edge:.6g} fail (too slow), other failures aside",
    ]


def test_option_of_a_choice() -> None:
    assert texts(trials(lambda point: point["net"] == "b", kind="NAN")) == [
        "most trials with net b fail (NaN)"
    ]


def test_options_that_look_the_same_are_told_apart() -> None:
    options = [True, 1, "1", "true"]
    for bad, text in zip(options, ["true", "1", '"1"', '"true"'], strict=True):
        points = [{"net": options[number % 4]} for number in range(40)]
        tried = [("NAN" if json.dumps(point["net"]) == json.dumps(bad) else None, point) for point in points]
        assert texts(tried) == [f"most trials with net {text} fail (NaN)"]


@pytest.mark.parametrize("kind", ["INFRA", "IMPORT"])
def test_failures_of_a_machine_or_an_import_have_none(kind: str) -> None:
    assert failure_regions(trials(lambda point: point["batch"] > 256, kind=kind)) == []


def test_failures_at_random_have_none() -> None:
    rng = random.Random(5)
    assert failure_regions(trials(lambda _: rng.random() < 0.25, kind="USER_ERROR")) == []
    assert failure_regions(trials(lambda _: True, kind="USER_ERROR")) == []


def test_region_that_chance_explains_is_not_named() -> None:
    rng = random.Random(1)
    points = [{f"x{i}": rng.random() for i in range(30)} for _ in range(14)]
    assert failure_regions([("OOM" if n < 4 else None, point) for n, point in enumerate(points)]) == []


def test_few_failures_have_none() -> None:
    assert failure_regions(trials(lambda point: point["batch"] > 256, count=6)) == []


@pytest.mark.parametrize(("tuner", "end"), [("Auto", "; 6 of the last 7 trials were there"), ("Random", "")])
def test_read_from_a_store(view_of: Callable[..., ExperimentView], tuner: str, end: str) -> None:
    good = [a_trial(number, value=0.5) for number in range(8)]
    bad = [a_trial(number, "FAILED", kind=FailureKind.OOM) for number in range(8, 14)]
    view = view_of(*good, *bad, tuner={"name": tuner})
    assert [region_text(region) for region in view.failure_regions()] == [
        f"most trials with lr above 0.7 fail (out of memory){end}"
    ]


def test_failures_that_differ_in_numbers_are_one_group(made: MadeExperiment, view: ExperimentView) -> None:
    made.commit(
        *(a_trial(n, "FAILED", reason=f"ValueError: bad value 0.{n}") for n in range(3)),
        a_trial(3, "FAILED", reason="exit code 3"),
    )
    groups = view.failures()
    assert [(group.count, group.sequence_ids) for group in groups] == [(3, [0, 1, 2]), (1, [3])]


def test_retries_count_the_failures_that_had_a_next_attempt(
    made: MadeExperiment, view: ExperimentView
) -> None:
    made.commit(
        a_trial(0, attempt=3, failed={FailureKind.USER_ERROR: 2}),
        a_trial(1, "FAILED", attempt=2, failed={FailureKind.USER_ERROR: 2}),
        a_trial(2, "FAILED", attempt=1, failed={FailureKind.USER_ERROR: 1}),
    )
    assert view.retries() == {"USER_ERROR": 3}


def test_failures_that_differ_in_the_order_of_a_set_are_one_group(
    made: MadeExperiment, view: ExperimentView
) -> None:
    reasons = ("kernel must be among {'rbf', 'poly'}", "kernel must be among {'poly', 'rbf'}")
    made.commit(*(a_trial(n, "FAILED", reason=reason) for n, reason in enumerate(reasons)))
    assert [group.sequence_ids for group in view.failures()] == [[0, 1]]
