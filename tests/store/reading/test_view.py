"""The view of one experiment: what it lets a reader see."""

from __future__ import annotations

import pytest

from pitchpipe.store.reading.log_files import NoSuchFile
from pitchpipe.store.reading.view import ExperimentView

from ...server.made_stores import MadeExperiment


def test_trial_files_are_those_that_the_trial_printed(filled: MadeExperiment, view: ExperimentView) -> None:
    folder = filled.folder.trial(1)
    folder.mkdir(parents=True)
    for name in ("stdout", "secret", "parameters.json"):
        (folder / name).write_text(name)
    assert [file.name for file in view.trial_logs(1)] == ["parameters.json", "stdout"]
    assert view.trial_log("T0001").text == "stdout"
    with pytest.raises(NoSuchFile):
        view.trial_log(1, "secret")
