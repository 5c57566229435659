"""The table of an experiment's moves, and its state, which follows it."""

from __future__ import annotations

import pytest

from pitchpipe.runner.experiment_state import EXPERIMENT_MOVES, ExperimentState, ExperimentStatus, Limits


def test_every_status_has_a_row() -> None:
    assert set(EXPERIMENT_MOVES) == set(ExperimentStatus)


def test_final_statuses_can_only_be_resumed_and_a_view_cannot() -> None:
    final = {status: moves for status, moves in EXPERIMENT_MOVES.items() if status.is_final}
    assert final == {
        ExperimentStatus.STOPPED: {ExperimentStatus.RUNNING},
        ExperimentStatus.DONE: {ExperimentStatus.RUNNING},
        ExperimentStatus.ERROR: {ExperimentStatus.RUNNING},
        ExperimentStatus.VIEWED: set(),
    }


def test_illegal_move_raises_an_error_with_both_statuses() -> None:
    state = ExperimentState("test", Limits())
    with pytest.raises(RuntimeError, match="experiment test is INITIALIZED and cannot become STOPPED"):
        state.move(ExperimentStatus.STOPPED)
    assert state.status is ExperimentStatus.INITIALIZED
