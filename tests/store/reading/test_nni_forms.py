"""NNI's forms of trials and results."""

from __future__ import annotations

import json

from pitchpipe.compat.nni.rest_forms import nni_export, nni_jobs, nni_metrics, nni_profile, nni_statistics
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial, counted_steps, results


def test_trials_have_the_keys_of_nni_and_no_result_before_they_succeed(
    filled: MadeExperiment, view: ExperimentView
) -> None:
    jobs = nni_jobs(view)
    assert [job["sequenceId"] for job in jobs] == [0, 1, 2, 3, 4]
    assert [len(job.get("finalMetricData", [])) for job in jobs] == [1, 1, 0, 1, 0]
    assert jobs[2]["message"] == "KeyError: 'lr'"
    assert json.loads(jobs[4]["hyperParameters"][0])["parameters"] == {"lr": 0.4, "units": 16}
    assert nni_profile(view)["nextSequenceId"] == 5
    assert nni_profile(view)["params"]["experimentWorkingDirectory"] == str(view.folder.path.parent)
    counts = {row["trialJobStatus"]: row["trialJobNumber"] for row in nni_statistics(view)}
    assert counts == {"SUCCEEDED": 3, "FAILED": 1, "RUNNING": 1}


def test_results_come_in_their_order_and_latest_is_one_a_trial(
    filled: MadeExperiment, view: ExperimentView
) -> None:
    fifth = view.trial("4").trial_id
    assert [row["type"] for row in nni_metrics(view, fifth)] == ["PERIODICAL"] * 3
    latest = [row for row in nni_metrics(view, latest=True) if row["trialJobId"] == fifth]
    assert [row["sequence"] for row in latest] == [2]


def test_export_has_the_trials_that_succeeded(filled: MadeExperiment, view: ExperimentView) -> None:
    rows = list(nni_export(view, intermediate=True))
    assert [json.loads(row["value"]) for row in rows] == [0.5, 0.1, 0.3]
    assert rows[2]["intermediate"] == ["0.7", "0.3"]


def test_metrics_of_all_trials_take_a_few_statements(made: MadeExperiment) -> None:
    trials = [a_trial(number, value=0.5) for number in range(1_200)]
    made.commit(
        *trials, metrics=[row for trial in trials for row in results(trial, [0.25, trial.sequence_id])]
    )
    statements = list[str]()
    with counted_steps(statements), ExperimentView(made.folder) as view:
        rows = list(nni_metrics(view))
        latest = [json.loads(json.loads(row["data"])) for row in nni_metrics(view, latest=True)]
    assert [row["sequence"] for row in rows[:3]] == [0, 1, 0]
    assert len(rows) == 3_600
    assert latest[2 * 700 : 2 * 700 + 2] == [700, 0.5]
    assert len(statements) < 120
