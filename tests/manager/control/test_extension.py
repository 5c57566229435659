"""Where the code of a project that was moved is found."""

from __future__ import annotations

from pathlib import Path

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.control.extension import with_code_in


def test_plug_ins_move_with_the_code_directory_in_which_they_are(tmp_path: Path) -> None:
    old, elsewhere, new = tmp_path / "old", tmp_path / "shared", tmp_path / "new"
    config = ExperimentConfig.from_canonical(
        {
            "trialCommand": "true",
            "trialCodeDirectory": str(old),
            "tuner": {"className": "mine.Tuner", "codeDirectory": str(old / "tuning")},
            "assessor": {"className": "theirs.Assessor", "codeDirectory": str(elsewhere)},
        }
    )
    moved = with_code_in(config, new)
    assert moved.trial_code_directory == new
    assert moved.tuner.code_directory == new / "tuning"
    assert moved.assessor is not None
    assert moved.assessor.code_directory == elsewhere
    assert moved.trial_command == "true"
