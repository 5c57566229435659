"""Failed trials in words."""

from __future__ import annotations

from pitchpipe.store.reading.failure_groups import FailureGroup
from pitchpipe.telling.failed_trials import FailedTrial


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
