"""New limits of an experiment that does not run, and where the code of a project that was moved is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.control import ControlError, change_experiment, options_to_extend
from pitchpipe.manager.control.extension import with_code_in
from pitchpipe.runner import TrialStatus
from pitchpipe.store.reading import ExperimentView

from ...stored import MadeExperiment, a_config, a_trial

BOTH = {"max_trial_number": 2, "max_experiment_duration": 10}


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


@pytest.mark.parametrize(
    ("limits", "changes", "status"),
    [
        (BOTH, [{"trial_concurrency": 3}], "DONE"),
        (BOTH, [{"max_experiment_duration": "1h"}], "DONE"),
        (BOTH, [{"max_experiment_duration": "1h"}, {"max_trial_number": 4}], "STOPPED"),
        (BOTH, [{"max_trial_number": 4}, {"max_experiment_duration": "1h"}], "STOPPED"),
        ({"max_trial_number": 2}, [{"max_trial_number": 3}], "STOPPED"),
        ({"max_experiment_duration": 10}, [{"max_trial_number": 4}], "DONE"),
        ({}, [{"trial_concurrency": 3}], "DONE"),  # it had tried all there is
        ({}, [{"max_trial_number": 9}], "STOPPED"),
    ],
)
def test_experiment_that_is_done_is_extended_once_no_limit_is_reached(
    tmp_path: Path, limits: dict[str, Any], changes: list[dict[str, Any]], status: str
) -> None:
    made = MadeExperiment(tmp_path / "e", a_config(**limits), "DONE")
    made.commit(a_trial(0), a_trial(1), run_time=20.0)
    made.store.close()
    for each in changes:
        change_experiment(made.folder, each)
    with ExperimentView(made.folder) as view:
        assert view.experiment().status == status


@pytest.mark.parametrize(
    ("cancelled", "changes", "status"),
    [
        ({}, {"max_experiment_duration": "1h"}, "STOPPED"),
        ({}, {"max_experiment_duration": "1h", "max_trial_number": 2}, "STOPPED"),
        ({"budget": 3.0}, {"max_experiment_duration": "1h"}, "DONE"),  # its tuner has planned without it
    ],
)
def test_more_time_continues_trials_that_its_end_cancelled(
    tmp_path: Path, cancelled: dict[str, Any], changes: dict[str, Any], status: str
) -> None:
    made = MadeExperiment(tmp_path / "e", a_config(**BOTH), "DONE")
    made.commit(a_trial(0), a_trial(1, status=TrialStatus.SYS_CANCELED, **cancelled), run_time=20.0)
    made.store.close()
    needs_trials = "--max-trial-number N " if cancelled else ""
    assert options_to_extend(made.folder) == f"{needs_trials}--max-experiment-duration TIME"
    change_experiment(made.folder, changes)
    with ExperimentView(made.folder) as view:
        assert view.experiment().status == status


@pytest.mark.parametrize("low", [{"max_trial_number": 2}, {"max_experiment_duration": 20}])
def test_limit_that_is_reached_already_changes_nothing(tmp_path: Path, low: dict[str, Any]) -> None:
    made = MadeExperiment(tmp_path / "e", a_config(**BOTH), "DONE")
    made.commit(a_trial(0), a_trial(1), run_time=20.0)
    made.store.close()
    with pytest.raises(ControlError):
        change_experiment(made.folder, low)
    with ExperimentView(made.folder) as view:
        assert view.experiment().status == "DONE"
        assert (view.config()["maxTrialNumber"], view.config()["maxExperimentDuration"]) == (2, 10)
