"""Families of repeats as the read model shows them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from pitchpipe.experiment import BestTrial
from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.results import result_of
from pitchpipe.runner.trial import Trial
from pitchpipe.store.reading import FamilyRow
from pitchpipe.store.reading.read_model import Repeats
from pitchpipe.store.reading.view import ExperimentView
from pitchpipe.telling import gain_text

from ...stored import a_trial

Viewing: TypeAlias = Callable[..., ExperimentView]


def a_repeat(number: int, family: int, repeat: int, value: Any = None, end: str = "", **fields: Any) -> Trial:
    """Return a trial of a family; without a value it failed."""
    status = fields.pop("status", "FAILED" if value is None else "SUCCEEDED")
    if isinstance(value, tuple):
        fields |= {"values": value, "final": "{}", "finals": 1}
        value = None
    made = a_trial(number, status, value, parameters={"lr": family / 10, "units": 16}, **fields)
    made.record = repeated(made.record, family, repeat, 40 + repeat)
    made.record = with_family_end(made.record, end) if end else made.record
    return made


@pytest.fixture
def families(view_of: Viewing) -> Viewing:
    """Return a function that views an experiment of repeats."""
    return partial(view_of, repeats={"count": 3})


def test_best_is_the_best_mean_and_not_the_luckiest_run(families: Viewing) -> None:
    lucky = [a_repeat(0, 0, 0, 0.0, "complete"), a_repeat(1, 0, 1, 0.9), a_repeat(2, 0, 2, 0.9)]
    good = [a_repeat(3, 3, 0, 0.2, "complete"), a_repeat(4, 3, 1), a_repeat(5, 3, 2, 0.4)]
    open_family = [a_repeat(6, 6, 0, 0.01), a_repeat(7, 6, 1, status="RUNNING")]
    view = families(*lucky, *good, *open_family)
    (best,) = view.summary().best
    assert (best.sequence_id, best.value, best.status) == (3, pytest.approx(0.3), "SUCCEEDED")
    interval = {"default": pytest.approx(12.706 * 0.1, rel=1e-3)}
    repeats = Repeats(trials=[3, 4, 5], count=2, of=3, interval=interval, end="complete")
    assert (best.repeats, best.end_time) == (repeats, 115.0)
    history = [(one.sequence_id, one.value) for one in view.history()]
    assert history == [(0, pytest.approx(0.6)), (3, pytest.approx(0.3))]
    shown = view.families()
    assert [one.sequence_id for one in shown] == [0, 3, 6]
    assert (shown[2].status, shown[2].value, shown[2].repeats.count) == ("RUNNING", 0.01, 1)


def test_families_that_have_not_ended_count_only_while_no_other_has(families: Viewing) -> None:
    going = [
        a_repeat(0, 0, 0, 0.5),
        a_repeat(1, 0, 1, 0.3),
        a_repeat(2, 2, 0, 0.1, "stopped"),
        a_repeat(3, 2, 1),
    ]
    (best,) = families(*going).best()
    assert (best.sequence_id, best.value, best.repeats.end) == (0, pytest.approx(0.4), None)
    assert best.status == "WAITING"
    view = families(*going, a_repeat(4, 4, 0, 0.9, "raced"), a_repeat(5, 4, 1, 0.9))
    assert [one.sequence_id for one in view.best()] == [4]


def test_cancelled_repeat_that_was_replaced_does_not_count(families: Viewing) -> None:
    cancelled = a_repeat(0, 0, 0, end="complete", status="SYS_CANCELED")
    (best,) = families(cancelled, a_repeat(1, 0, 1, 0.5), a_repeat(2, 0, 0, 0.1)).best()
    assert (best.sequence_id, best.value, best.repeats.trials) == (0, 0.3, [1, 2])


def test_front_and_limits_are_those_of_the_means(families: Viewing) -> None:
    objectives = [{"name": name, "direction": "minimize"} for name in ("loss", "ms")]
    objectives.append({"name": "memory", "constraint": "<= 10"})
    values = [(0.0, 5.0, 1.0), (0.4, 7.0, 1.0)]
    values += [(0.9, 1.0, 1.0), (0.9, 1.0, 1.0)]
    values += [(0.0, 0.0, 9.0), (0.0, 0.0, 15.0)]
    ends = ("complete", "")
    trials = [a_repeat(n, n - n % 2, n % 2, value, ends[n % 2]) for n, value in enumerate(values)]
    view = families(*trials, objectives=objectives)
    front = view.front()
    assert (front.trials, front.infeasible) == ([0, 2], [4])
    assert [one.values["loss"] for one in view.best()] == [0.2, 0.9]
    assert [point.time for point in front.history] == [111.0, 113.0]


def test_family_without_a_result_has_no_mean(families: Viewing) -> None:
    view = families(a_repeat(0, 0, 0, end="failed"), a_repeat(1, 0, 1))
    assert view.best() == []
    (family,) = view.families()
    assert (family.status, family.value, family.values) == ("FAILED", None, {})
    assert family.repeats.interval == {}


def test_family_lasts_as_long_as_its_repeats_and_has_no_reason_of_one_of_them(families: Viewing) -> None:
    failed = {"reason": "RuntimeError: no luck", "start_time": 100.0, "end_time": 103.0}
    repeats = [
        a_repeat(0, 0, 0, end="complete", **failed),
        a_repeat(1, 0, 1, 0.5, start_time=900.0, end_time=905.0),
    ]
    (family,) = families(*repeats).families()
    assert (family.duration, family.end_time) == (8.0, 905.0)
    assert (family.status, family.reason, family.kind, family.final) == ("SUCCEEDED", "", None, None)


def test_closest_to_the_defaults_has_its_mean_in_python_too(families: Viewing) -> None:
    repeats = [a_repeat(0, 0, 0, 1.0, "complete"), a_repeat(1, 0, 1, 3.0)]
    repeats += [a_repeat(2, 2, 0, 0.25, "complete"), a_repeat(3, 2, 1, 0.75)]
    view = families(*repeats, defaults={"lr": 0.0, "units": 16}, keep_close=True)
    found = result_of(view.folder.path).closest_to_defaults
    assert found is not None
    assert (found["trial"]["value"], found["trial"]["repeats"]["trials"]) == (0.5, [2, 3])


def test_defaults_are_compared_by_their_mean(families: Viewing) -> None:
    first = a_repeat(0, 0, 0, 0.4, "complete")
    first.record = first.record.replace("algorithm", "defaults")
    summary = families(first, a_repeat(1, 0, 1, 0.6), defaults={"lr": 0.0, "units": 16}).summary()
    assert (summary.defaults.value, summary.defaults.status) == (0.5, "SUCCEEDED")
    said = "no family is better than the defaults (0.5 ± 1.3, mean of 2 of 3 repeats, family 0)"
    assert gain_text(summary) == said


def test_results_in_python_are_those_of_families(families: Viewing) -> None:
    view = families(a_repeat(0, 0, 0, 0.4, "complete"), a_repeat(1, 0, 1, 0.6), a_repeat(2, 0, 2))
    result = result_of(view.folder.path)
    assert isinstance(result.best, BestTrial)
    assert (result.best.value, result.best.repeats) == (0.5, 2)
    assert result.best.interval == pytest.approx(12.706 * 0.1, rel=1e-3)
    (family,) = result.families
    assert (family["value"], family["repeats"]["trials"]) == (0.5, [0, 1, 2])
    assert result.best_by() == family
    rows = [(row["value"], row["family"], row["repeat"]) for row in result.trials]
    assert rows == [(0.4, 0, 0), (0.6, 0, 1), (None, 0, 2)]


def test_experiment_without_repeats_has_no_families(view_of: Viewing) -> None:
    view = view_of(a_trial(0, value=0.5))
    assert view.families() == []
    (best,) = view.best()
    assert (best.family, best.repeat) == (None, None)
    assert not isinstance(best, FamilyRow)


def test_infinite_repeats(families: Viewing) -> None:
    (best,) = families(a_repeat(0, 0, 0, math.inf, "complete"), a_repeat(1, 0, 1, 1.0)).best()
    assert (best.value, best.repeats.interval) == (math.inf, {"default": None})


def test_families_are_compared_for_closeness_by_their_means(families: Viewing) -> None:
    defaults = [a_repeat(1, 1, 0, 0.5, "complete"), a_repeat(2, 1, 1, 0.7)]
    lucky = [a_repeat(3, 3, 0, 0.0, "complete"), a_repeat(4, 3, 1, 0.9)]
    good = [a_repeat(5, 5, 0, 0.2, "complete"), a_repeat(6, 5, 1, 0.4)]
    view = families(*defaults, *lucky, *good, defaults={"lr": 0.1, "units": 16}, keep_close=True)
    found = view.closest_to_defaults()
    assert found is not None
    assert (found.best.sequence_id, found.best.value) == (5, pytest.approx(0.3))
    assert found.trial == found.best
