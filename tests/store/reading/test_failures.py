"""Failed trials, grouped and described."""

from __future__ import annotations

from pitchpipe.runner.trial import FailureKind
from pitchpipe.store.reading.failures import FailedTrial, FailureGroup
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial


def test_failures_that_differ_in_numbers_are_one_group(made: MadeExperiment, view: ExperimentView) -> None:
    made.commit(
        *(a_trial(n, "FAILED", reason=f"ValueError: bad value 0.{n}") for n in range(3)),
        a_trial(3, "FAILED", reason="exit code 3"),
    )
    groups = view.failures()
    assert [(group.count, group.sequence_ids) for group in groups] == [(3, [0, 1, 2]), (1, [3])]


def group(reason: str, error: str | None, exit_code: int | None) -> FailureGroup:
    return FailureGroup(
        kind="USER_ERROR", reason=reason, error=error, exit_code=exit_code, attempt=2, sequence_ids=[7]
    )


def test_failed_trial_has_the_lines_before_the_last_and_its_ending() -> None:
    failed = FailedTrial.of(group("exit code 3", "one\ntwo\nthree\n\nfour\nValueError: bad\n", 1))
    assert failed.lines == ("two", "three", "four")
    assert str(failed) == "exit code 3: ValueError: bad"
    assert (failed.sequence_id, failed.facts) == (7, "USER_ERROR, exit code 1, 2 attempts")
    assert failed.has_output


def test_failed_trial_does_not_repeat_what_its_reason_says() -> None:
    failed = FailedTrial.of(group("killed by SIGKILL", None, -9))
    assert (str(failed), failed.ending, failed.has_output) == ("killed by SIGKILL", "", True)
    assert FailedTrial.of(group("KeyError: 'lr'", "KeyError: 'lr'", None)).last_line == ""


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


def test_excerpt_of_an_error_deep_in_a_library_begins_with_the_users_line() -> None:
    own = '  File "/home/me/train.py", line 7, in <module>\n    model.fit(x, y)\n'
    marks = "    ~~~~~~~~~^^^^^^\n"
    library = '  File "/x/lib/python3.11/site-packages/sklearn/svm.py", line 9, in fit\n    check(x)\n'
    error = f"Traceback (most recent call last):\n{own}{marks}{library * 5}ValueError: bad"
    assert FailedTrial.of(group("ValueError: bad", error, 1)).lines == (
        *own.splitlines(),
        "  ...",
        "    check(x)",
        *library.splitlines(),
    )
    near = f"Traceback (most recent call last):\n{own}{marks}ValueError: bad"
    assert FailedTrial.of(group("ValueError: bad", near, 1)).lines == tuple(own.splitlines())
