"""The state of the experiment changes only as its table of moves says."""

from __future__ import annotations

import pytest

from pitchpipe.runner.experiment_status import ExperimentStatus
from pitchpipe.runner.limits import Limits
from pitchpipe.runner.state import ExperimentState


def test_illegal_move_raises_an_error_with_both_statuses() -> None:
    state = ExperimentState("test", Limits())
    with pytest.raises(RuntimeError, match="experiment test is INITIALIZED and cannot become STOPPED"):
        state.move(ExperimentStatus.STOPPED)
    assert state.status is ExperimentStatus.INITIALIZED
