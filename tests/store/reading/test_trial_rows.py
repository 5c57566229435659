"""A page of trials, and all about one."""

from __future__ import annotations

import pytest

from pitchpipe.results import result_of
from pitchpipe.runner.effects import AttemptRow
from pitchpipe.store.reading import TrialQuery
from pitchpipe.store.reading.trial_rows import read_matching
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial


def test_trial_is_returned_whole(filled: MadeExperiment, view: ExperimentView) -> None:
    found = view.trial("T0002")
    assert found == view.trial(2)
    assert (found.exit_code, found.kind) == (1, "USER_ERROR")
    assert found.error == "Traceback\nKeyError: 'lr'"
    assert view.trial(4).last is None  # its last result is no number
    for name in ("T9", "T\udcff"):
        with pytest.raises(LookupError, match=f"no trial '{name}'"):
            view.trial(name)


def test_trial_is_not_shorter_than_nothing_when_the_clock_was_set_back(
    made: MadeExperiment, view: ExperimentView
) -> None:
    made.commit(a_trial(0, start_time=100.0, end_time=99.986))
    assert view.trial(0).duration == 0.0
    assert result_of(made.folder.path).trials[0]["duration"] == 0.0


def test_trial_runs_in_all_its_attempts_and_not_while_it_is_paused(
    made: MadeExperiment, view: ExperimentView
) -> None:
    def ran(number: int, attempt: int, begin: float, end: float) -> AttemptRow:
        return AttemptRow(
            sequence_id=number, attempt=attempt, outcome="PAUSED", agent="a", start_time=begin, end_time=end,
            reason="",
        )  # fmt: skip

    made.commit(
        a_trial(0, attempt=2, start_time=110.0, end_time=111.0),
        a_trial(1, "EARLY_STOPPED", start_time=100.0, end_time=150.0),  # while it was paused
        a_trial(2, "PAUSED", start_time=100.0),
        a_trial(3, "RUNNING", start_time=100.0),
        attempts=[ran(0, 1, 100.0, 104.0), ran(1, 1, 100.0, 102.0), ran(2, 1, 100.0, 103.0)],
    )
    assert [view.trial(number).duration for number in range(4)] == [5.0, 2.0, 3.0, None]
    longest = TrialQuery(sort="duration", descending=True)
    assert [one.sequence_id for one in view.trials(longest).trials] == [3, 0, 2, 1]
    assert (view.trial(3).seconds or 0) > 1e6


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("2", [2]),
        ("T0002", [2]),
        ("T000", [0, 1, 2, 3, 4]),
        ("0002", [2]),
        ("9", []),
        ("%", []),
        ("\udcff", []),
    ],
)
def test_word_matches_a_number_an_id_or_the_beginning_of_one(
    filled: MadeExperiment, view: ExperimentView, word: str, expected: list[int]
) -> None:
    assert [number for number, _ in read_matching(view.database, word)] == expected
