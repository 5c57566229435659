"""The table of a trial's moves."""

from __future__ import annotations

import pytest

from pitchpipe.runner.trial import TRIAL_MOVES, Cause, Trial, TrialStatus, WrongMove


def test_every_status_has_a_row_and_final_ones_have_no_way_out() -> None:
    assert set(TRIAL_MOVES) == set(TrialStatus)
    assert {status for status in TrialStatus if status.is_final} == {
        TrialStatus.SUCCEEDED,
        TrialStatus.FAILED,
        TrialStatus.EARLY_STOPPED,
        TrialStatus.USER_CANCELED,
        TrialStatus.SYS_CANCELED,
    }


def test_illegal_move_raises_an_error_with_the_story_of_the_trial() -> None:
    trial = Trial(trial_id="AbCdE", sequence_id=0, parameter_id=0, record="{}", created=0.0)
    trial.move(Cause.STARTED)
    trial.move(Cause.ENDED_WELL)
    with pytest.raises(
        WrongMove, match=r"AbCdE is SUCCEEDED .*WAITING -> RUNNING \(started\); RUNNING -> SUCCEEDED"
    ):
        trial.move(Cause.STARTED)


def test_only_failed_trials_and_those_that_the_experiment_cancelled_run_again() -> None:
    again = {status for status in TrialStatus if status.is_final and TRIAL_MOVES[status]}
    assert again == {TrialStatus.FAILED, TrialStatus.SYS_CANCELED}
