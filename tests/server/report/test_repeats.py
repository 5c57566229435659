"""Repeats in a report: the best is a mean with its margin."""

from __future__ import annotations

from pathlib import Path

from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.server.experiment_table import read_table
from pitchpipe.server.report.report_texts import texts_of
from pitchpipe.store.reading import ExperimentView

from ...stored import MadeExperiment, a_config, a_trial


def test_best_family_is_named_with_its_mean_and_margin(tmp_path: Path) -> None:
    made = MadeExperiment(tmp_path / "k3x9a2bq", a_config(repeats=2), status="DONE")
    trials = [a_trial(0, value=0.5), a_trial(1, value=0.75)]
    for number, trial in enumerate(trials):
        trial.record = repeated(trials[0].record, 0, number)
    trials[0].record = with_family_end(trials[0].record, "complete")
    made.commit(*trials)
    with ExperimentView(made.folder) as view:
        table = read_table(view)
        texts = texts_of(view, table)
    trials, values = table.finished("default")
    assert ([trial.number for trial in trials], values.tolist()) == ([0], [0.625])
    assert [trial.number for trial in table.trials] == [0, 1]
    (best,) = texts.best
    assert (best.number, best.repeats) == (0, "mean of 2 repeats")
    assert [value for _, value in best.values] == ["0.625 ± 1.6"]
    assert ("Best result", "0.625 ± 1.6 (mean of 2 repeats, family 0)") in texts.summary
