"""NNI's REST API: the paths and forms that its clients read."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pitchpipe.server.experiments import Experiments

from ..stored import MadeExperiment, a_trial, results
from .asking import Asking

BASE = "/api/v1/nni"


@pytest.fixture
def asking(made: MadeExperiment) -> Iterator[Asking]:
    first = a_trial(0, final='{"default": 0.5, "loss": 2}', value=0.5)
    made.commit(first, a_trial(1, "RUNNING"), a_trial(2, "FAILED"), metrics=results(first, [3.0, 0.25]))
    folder = made.folder.trial(0)
    folder.mkdir(parents=True)
    (folder / "stdout").write_text("hello")
    experiments = Experiments(made.folder.path.parent)
    yield Asking(experiments)
    experiments.close()


def test_experiment_has_nnis_form(asking: Asking) -> None:
    assert asking.get(f"{BASE}/check-status").json == {"status": "RUNNING", "errors": []}
    profile = asking.get(f"{BASE}/experiment").json
    assert profile == asking.get(f"/made{BASE}/experiment").json
    assert (profile["id"], profile["startTime"], profile["nextSequenceId"]) == ("made1234", 100_000, 3)
    assert profile["params"]["trialCommand"] == "true"
    metadata = asking.get(f"{BASE}/experiment-metadata").json
    assert (metadata["platform"], metadata["endTime"]) == ("local", "N/A")
    assert asking.get(f"{BASE}/experiments-info").json == [metadata]
    assert asking.get(f"/absent{BASE}/experiment").status == 404


def test_trials_have_nnis_form(asking: Asking) -> None:
    jobs = asking.get(f"{BASE}/trial-jobs").json
    assert [job["status"] for job in jobs] == ["SUCCEEDED", "RUNNING", "FAILED"]
    assert asking.get(f"{BASE}/trial-jobs", status="RUNNING").json == jobs[1:2]
    assert asking.get(f"{BASE}/trial-jobs/{jobs[0]['trialJobId']}").json == jobs[0]
    assert "parameters" in json.loads(jobs[0]["hyperParameters"][0])
    (final,) = jobs[0]["finalMetricData"]
    assert json.loads(json.loads(final["data"])) == {"default": 0.5, "loss": 2}
    assert "finalMetricData" not in jobs[1]
    counts = {
        one["trialJobStatus"]: one["trialJobNumber"] for one in asking.get(f"{BASE}/job-statistics").json
    }
    assert counts == {"SUCCEEDED": 1, "RUNNING": 1, "FAILED": 1}
    assert asking.get(f"{BASE}/trial-file/0/trial.log").body == b"hello"
    (exported,) = asking.get(f"{BASE}/export-data").json
    assert json.loads(exported["value"]) == {"default": 0.5, "loss": 2}


def test_results_have_nnis_form(asking: Asking) -> None:
    def values(path: str, **query: str) -> list[tuple[str, int, float]]:
        return [
            (row["type"], row["sequence"], json.loads(json.loads(row["data"])))
            for row in asking.get(f"{BASE}/{path}", **query).json
        ]

    final = ("FINAL", 0, {"default": 0.5, "loss": 2})
    assert values("metric-data") == [("PERIODICAL", 0, 3.0), ("PERIODICAL", 1, 0.25), final]
    assert values("metric-data/0", type="FINAL") == [final]
    assert values("metric-data/1") == values("metric-data-range/1/2") == []
    assert values("metric-data-latest") == [("PERIODICAL", 1, 0.25), final]
    assert values("metric-data-range/0/9") == values("metric-data")
