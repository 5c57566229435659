"""Ray Tune's names for the statuses."""

from __future__ import annotations

from pitchpipe.runner.trial import TrialStatus
from pitchpipe.runner.vocabulary import TUNE_STATUS


def test_every_status_has_a_name_in_tune() -> None:
    assert list(TUNE_STATUS) == list(TrialStatus)
    assert set(TUNE_STATUS.values()) == {"PENDING", "RUNNING", "PAUSED", "TERMINATED", "ERROR"}
    final = {name for status, name in TUNE_STATUS.items() if status.is_final}
    assert final == {"TERMINATED", "ERROR"}
