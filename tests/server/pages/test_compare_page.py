"""The comparison of trials on a page."""

from __future__ import annotations

from pathlib import Path

from pitchpipe.server.pages.compare_page import _result_rows
from pitchpipe.store.reading import ExperimentView

from ...stored import MadeExperiment, a_trial


def test_time_of_a_trial_that_runs_is_the_time_so_far(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "made")
    made.commit(a_trial(0, start_time=100.0, end_time=160.0), a_trial(1, "RUNNING", start_time=100.0))
    with ExperimentView(made.folder) as view:
        *_, took = _result_rows([view.trial(0), view.trial(1)], {})
    assert took.values[0] == "1 min 00 s"
    assert took.values[1].endswith(" h")
