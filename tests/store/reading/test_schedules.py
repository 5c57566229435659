"""Schedules: what a trial was trained with, through the checkpoints that it copied, whatever became of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.runner.trial import Trial
from pitchpipe.store import StoreError
from pitchpipe.store.reading import ExperimentView, NoScheduleError, Schedule

from ...stored import a_trial, results, scheduled

ViewOf = Callable[..., ExperimentView]


def step(first: int, lr: float, copied: tuple[int, int, int] | None = None) -> dict[str, Any]:
    """Return a recorded step; `copied` from a trial, after so many results, when it had so many steps."""
    made: dict[str, Any] = {"first": first, "parameters": {"lr": lr}}
    if copied is not None:
        made |= dict(zip(("copied_from", "copied_at", "copied_steps"), copied, strict=True))
    return made


def member(number: int, count: int, *steps: dict[str, Any], status: str = "SUCCEEDED", **more: Any) -> Trial:
    """Return a trial with so many results and these steps; without steps its learning rate is number / 10."""
    trial = a_trial(
        number, status, parameters={"lr": steps[-1]["parameters"]["lr"] if steps else number / 10}, **more
    )
    results(trial, [0.5] * count)
    return scheduled(trial, *steps) if steps else trial


def told(schedule: Schedule) -> list[tuple[int, float, int]]:
    """Return from which result on which learning rate was used, and by whom."""
    return [(one.begin, one.parameters["lr"], one.trial) for one in schedule.steps]


def test_trial_that_copied_a_checkpoint_has_the_schedule_of_the_other_before_it(view_of: ViewOf) -> None:
    heir = member(1, 12, step(0, 0.9), step(8, 0.08, (0, 8, 1)))
    view = view_of(member(0, 12), heir)
    schedule = view.schedule(1)
    assert told(schedule) == [(0, 0.0, 0), (8, 0.08, 1)]
    assert (schedule.results, schedule.changes) == (12, 1)
    assert (schedule.steps[1].copied_from, schedule.steps[1].copied_at) == (0, 8)
    assert [one.parameters["lr"] for one in schedule.own] == [0.9, 0.08]
    assert (told(view.schedule("T0000")), view.schedule(0).changes) == ([(0, 0.0, 0)], 0)


def test_copies_are_followed_from_copy_to_copy_and_past_what_happened_later(view_of: ViewOf) -> None:
    first = member(0, 12, step(0, 0.1), step(8, 0.2))  # changed after it was copied
    second = member(
        1, 12, step(0, 0.5), step(4, 0.11, (0, 4, 1)), step(8, 0.12, (2, 8, 1))
    )  # and copied again
    third = member(2, 12, step(0, 0.7))
    last = member(3, 12, step(0, 0.9), step(8, 0.3, (1, 8, 2)))
    assert told(view_of(first, second, third, last).schedule(3)) == [(0, 0.1, 0), (4, 0.11, 1), (8, 0.3, 3)]


def test_copy_at_the_result_at_which_the_other_copied_skips_the_other(view_of: ViewOf) -> None:
    second = member(1, 8, step(0, 0.5), step(4, 0.11, (0, 4, 1)))
    last = member(2, 8, step(0, 0.9), step(4, 0.3, (1, 4, 2)))
    schedule = view_of(member(0, 8), second, last).schedule(2)
    assert told(schedule) == [(0, 0.0, 0), (4, 0.3, 2)]
    assert schedule.steps[1].copied_from == 1


def test_checkpoint_that_has_trained_longer_moves_what_follows(view_of: ViewOf) -> None:
    heir = member(1, 9, step(0, 0.9), step(4, 0.08, (0, 6, 1)), step(7, 0.05))
    schedule = view_of(member(0, 12), heir).schedule(1)
    assert told(schedule) == [(0, 0.0, 0), (6, 0.08, 1), (9, 0.05, 1)]
    assert (schedule.results, schedule.steps[2].first) == (11, 7)


def test_step_that_made_nothing_is_replaced_and_its_copy_stays(view_of: ViewOf) -> None:
    heir = member(1, 9, step(0, 0.9), step(4, 0.08, (0, 4, 1)), step(4, 0.05))
    assert told(view_of(member(0, 12), heir).schedule(1)) == [(0, 0.0, 0), (4, 0.05, 1)]


@pytest.mark.parametrize(
    "status", ["FAILED", "RUNNING", "PAUSED", "WAITING", "EARLY_STOPPED", "SYS_CANCELED"]
)
def test_schedule_of_any_trial_ends_with_what_it_last_began(view_of: ViewOf, status: str) -> None:
    heir = member(1, 8, step(0, 0.9), step(8, 0.08, (0, 8, 1)), status=status)
    schedule = view_of(member(0, 12), heir).schedule(1)
    assert told(schedule) == [(0, 0.0, 0), (8, 0.08, 1)]
    assert schedule.results == 8


def test_trial_that_began_again_has_its_last_parameters_alone_and_its_heirs_what_it_was(
    view_of: ViewOf,
) -> None:
    again = member(0, 3, step(0, 0.1), step(4, 0.2), step(0, 0.2), status="FAILED")
    view = view_of(again, member(1, 12, step(0, 0.9), step(8, 0.3, (0, 8, 2))))
    assert told(view.schedule(0)) == [(0, 0.2, 0)]
    assert told(view.schedule(1)) == [(0, 0.1, 0), (4, 0.2, 0), (8, 0.3, 1)]


def test_lone_final_results_spend_their_budget(view_of: ViewOf) -> None:
    trial = member(0, 0, step(0, 0.1), step(3, 0.2), value=0.5, budget=9.0)
    schedule = view_of(trial).schedule(0)
    assert (told(schedule), schedule.results) == ([(0, 0.1, 0), (3, 0.2, 0)], 9)


def test_experiment_without_a_population_says_so(view_of: ViewOf) -> None:
    view = view_of(a_trial(0, parameters={"schedule": "cosine", "lr": 0.1}), a_trial(1))
    wanted = (
        f"no trial of experiment {view.experiment_id} has a schedule: none continued with other parameters"
    )
    with pytest.raises(NoScheduleError, match=re.escape(wanted)):
        view.schedule(0)
    assert (view.has_schedules(), view.schedules([0, 1]), view.parameter_changes(0)) == (False, [], 0)


def test_trial_that_is_not_there_is_named(view_of: ViewOf) -> None:
    view = view_of(member(0, 12, step(0, 0.1), step(4, 0.2)))
    for name in (7, "nobody", -1):
        with pytest.raises(LookupError, match=f"there is no trial '{name}'"):
            view.schedule(name)


@pytest.mark.parametrize(
    ("copied", "said"),
    [((1, 4, 2), "trial 1 copies itself"), ((7, 4, 1), "there is no trial 7"), ((0, None, 1), "NoneType")],
)
def test_damaged_schedule_is_named(view_of: ViewOf, copied: Any, said: str) -> None:
    view = view_of(member(0, 8), member(1, 8, step(0, 0.5), step(4, 0.1, copied)))
    with pytest.raises(StoreError, match=f"is damaged .the schedule of trial 1: .*{said}"):
        view.schedule(1)


def test_epochs_have_the_parameters_of_their_step(view_of: ViewOf) -> None:
    schedule = view_of(member(0, 12, step(0, 0.1), step(4, 0.2))).schedule(0)
    assert [schedule.parameters_at(epoch)["lr"] for epoch in (0, 3, 4, 11, 99)] == [0.1, 0.1, 0.2, 0.2, 0.2]
    with pytest.raises(ValueError, match="there is no epoch -1"):
        schedule.parameters_at(-1)
