"""The table of an experiment's moves."""

from __future__ import annotations

from pitchpipe.runner.experiment_status import EXPERIMENT_MOVES, ExperimentStatus


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
