"""`pitchpipe trial show --why`: the reason of a trial's end, beside the others."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.runner.changes import MetricRow


@pytest.fixture
def experiment(stored: Callable[..., Any], trial_of: Callable[..., Any]) -> None:
    """Maximised: 0.9, 0.5, one stopped at 0.3 after two results, two failed alike."""
    trials = [
        trial_of(0, "SUCCEEDED", final=0.9, next_sequence=2),
        trial_of(1, "SUCCEEDED", final=0.5, next_sequence=2),
        trial_of(
            2,
            "EARLY_STOPPED",
            reason="0.3 is below the median 0.7 of 2 trials after 2 results",
            next_sequence=2,
        ),
        trial_of(3, "FAILED", reason="exit code 3", exit_code=3, kind="USER_ERROR", error="ValueError: 3"),
        trial_of(4, "FAILED", reason="exit code 3", exit_code=3, kind="USER_ERROR", error="ValueError: 4"),
    ]
    values = {0: ("0.6", "0.8"), 1: ("0.7", '{"default": 0.25}'), 2: ("0.2", "0.3")}
    rows = [
        MetricRow(
            trial=trials[n], attempt=1, kind="PERIODICAL", sequence=step, value=value, time=1000.0 + step
        )
        for n, found in values.items()
        for step, value in enumerate(found)
    ]
    stored().write("explained", trials, rows)


def lines(call: Callable[..., Any], trial: int) -> list[str]:
    called = call("trial", "show", "explained", trial, "--why")
    assert called.code == 0, called.err
    return [line.strip() for line in called.out.splitlines()]


@pytest.mark.usefixtures("experiment")
def test_why_of_a_stopped_trial_compares_it_at_its_step(call: Callable[..., Any]) -> None:
    said = lines(call, 2)
    assert said[0] == "trial 2 (T0002): it was stopped early"
    assert "0.3 is below the median 0.7 of 2 trials after 2 results" in said
    assert "The last of its 2 intermediate results was 0.3." in said
    assert (
        "After 2 results it had 0.3; of the 2 other trials that got there, 1 had a better one, the best 0.8."
        in said
    )


@pytest.mark.usefixtures("experiment")
def test_why_of_a_failed_trial_has_the_error_and_who_failed_alike(call: Callable[..., Any]) -> None:
    said = lines(call, 4)
    assert said[0] == "trial 4 (T0004): why it failed"
    assert "2 trials failed the same way; the first was trial 3." in said
    assert said[-2:] == ["error", "ValueError: 4"]


@pytest.mark.usefixtures("experiment")
def test_why_with_json_is_a_text_in_the_object_of_the_trial(call: Callable[..., Any]) -> None:
    shown = json.loads(call("trial", "show", "explained", 4, "--why", "--json").out)
    assert shown["why"] + "\n" == call("trial", "show", "explained", 4, "--why").out
    assert {name: value for name, value in shown.items() if name != "why"} == json.loads(
        call("trial", "show", "explained", 4, "--json").out
    )


@pytest.mark.usefixtures("experiment")
def test_why_of_a_trial_that_succeeded_has_its_rank(call: Callable[..., Any]) -> None:
    assert lines(call, 0)[1:] == ["Its result is 0.9: the best of 2."]
    assert lines(call, 1)[1:] == ["Its result is 0.5: rank 2 of 2."]


def test_why_of_equal_results_says_with_how_many_others(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    stored().write(
        "explained", [trial_of(n, "SUCCEEDED", final=value) for n, value in enumerate((0.5, 0.5, 0.9, 0.5))]
    )
    assert lines(call, 0)[1:] == ["Its result is 0.5: rank 2 of 4, tied with 2 others."]


def test_why_with_several_objectives_names_each_and_the_place_by_the_front(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    objectives = [{"name": "default", "direction": "maximize"}, {"name": "size", "direction": "minimize"}]
    finals = [(0.9, 10.0), (0.8, 5.0), (0.8, 7.0), (0.6, 11.0)]
    trials = [
        trial_of(n, "SUCCEEDED", None, dict(zip(("default", "size"), each, strict=True)))
        for n, each in enumerate(finals)
    ]
    stored(objectives=objectives).write("explained", trials)
    assert lines(call, 0)[1:] == [
        "Its results are default 0.9, size 10.",
        "It is on the Pareto front of 2 trials: no other is as good in every objective.",
    ]
    place = "It is not on the Pareto front: {} better in at least one objective and no worse in any."
    assert lines(call, 2)[2] == place.format("trial 1 is")
    assert lines(call, 3)[2] == place.format("trials 0, 1 are")


def test_why_of_an_exit_code_shows_the_end_of_the_output(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    failed = trial_of(0, "FAILED", reason="exit code 3", exit_code=3, kind="USER_ERROR")
    folder = stored().write("explained", [failed])
    files = folder.trial(0)
    files.mkdir(parents=True)
    (files / "stdout").write_text("".join(f"line {number}\n" for number in range(9)))
    (files / "stderr").touch()
    said = lines(call, 0)
    assert said[-7:-1] == ["the end of its stdout", *(f"line {number}" for number in range(4, 9))]
    assert said[-1] == "all that it printed: pitchpipe trial log explained 0"


def test_why_of_an_overdue_trial_names_the_field_to_raise(
    stored: Callable[..., Any], trial_of: Callable[..., Any], call: Callable[..., Any]
) -> None:
    reason = "ran longer than max_trial_duration (3 s)"
    stored().write("explained", [trial_of(0, "FAILED", reason=reason, kind="TIMEOUT")])
    assert "to give trials more time, raise max_trial_duration in the config" in lines(call, 0)
