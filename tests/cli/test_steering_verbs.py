"""`pitchpipe update`, `import` and `trial add`: a running experiment is changed from another process."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from .conftest import Call, Start, Storing, until

CONFIG = """\
search_space:
  x: {_type: uniform, _value: [0, 1]}
trial_command: sh trial.sh
max_trial_number: 3
trial_concurrency: 1
kill_grace: 0s
tuner: {name: Random}
training_service: {platform: local}
"""
# Every trial waits until there is a file `go`.
SCRIPT = """\
while [ ! -e go ]; do sleep 0.02; done
echo '{"final": 1}' >> "$PITCHPIPE_REPORTS"
"""


@pytest.fixture
def held(tmp_path: Path, start: Start, directory: Path) -> Any:
    """Yield a running experiment `held` whose trials end at `release()`; `rows(query)` reads its store."""
    (tmp_path / "trial.sh").write_text(SCRIPT)
    (tmp_path / "experiment.yml").write_text(CONFIG)
    started = start("run", tmp_path / "experiment.yml", "--experiment-id", "held", "--quiet")
    database = directory / "held" / "experiment.db"

    def rows(query: str) -> list[Any]:
        if not database.exists():
            return []
        try:
            with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
                return db.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []  # it is being made

    started.rows = rows
    started.release = (tmp_path / "go").touch
    until(lambda: rows("SELECT 1 FROM trials WHERE status = 'RUNNING'"))
    return started


def test_bad_changes_change_nothing_and_an_update_holds_for_the_trials_that_come(
    held: Any, call: Call, tmp_path: Path
) -> None:
    (tmp_path / "bad.yml").write_text("x: {_type: unifrm, _value: [7, 8]}\n")
    refused = call("update", "held", "--search-space", tmp_path / "bad.yml")
    assert refused.code == 1
    assert "unifrm" in refused.err
    assert call("update", "held").code == 2
    assert call("update", "held", "--trial-concurrency", 0).code == 2
    (tmp_path / "results.json").write_text(
        '[{"parameter": {"x": 0.5}, "value": 1}, {"parameter": {"x": 0.1}}]'
    )
    refused = call("import", "held", "--file", tmp_path / "results.json")
    assert refused.code == 1
    assert "results[1] is not {" in refused.err
    assert held.rows("SELECT count(*) FROM commands WHERE code IN ('FD', 'SS')") == [(0,)]
    assert call("trial", "add", "held", "--parameters", "[1]").code == 2
    assert call("trial", "add", "held").code == 2
    strange = call("trial", "add", "held", "--parameters", '{"y": 0.5}')
    assert strange.code == 2
    assert "not in the search space" in strange.err
    assert call("trial", "add", "held", "--parameters", '{"x": 7}').code == 2
    assert held.rows("SELECT count(*) FROM trials") == [(1,)]

    assert call("update", "held", "--search-space", tmp_path).code == 2
    ours, its = os.pipe()  # as the shell gives for <(command)
    with open(its, "w") as file:
        file.write("x: {_type: uniform, _value: [7, 8]}\n")
    called = call("update", "held", "--search-space", f"/dev/fd/{ours}")
    os.close(ours)
    assert (called.code, called.out.endswith(", in the new search space\n")) == (0, True)
    called = call("update", "held", "--max-trial-number", 5, "--trial-concurrency", 2)
    assert (called.code, called.out) == (0, "experiment held: 2 at a time, at most 5 trials\n")
    until(lambda: held.rows("SELECT count(*) FROM trials WHERE status = 'RUNNING'") == [(2,)])
    held.release()
    assert held.finish().code == 0
    found = [
        json.loads(record)["parameters"]["x"]
        for (record,) in held.rows(
            "SELECT record FROM trials WHERE status = 'SUCCEEDED' ORDER BY sequence_id"
        )
    ]
    assert len(found) == 5
    assert found[0] <= 1
    assert all(7 <= x <= 8 for x in found[1:])
    [(config,)] = held.rows("SELECT config FROM experiment")
    assert json.loads(config)["maxTrialNumber"] == 5


def test_trials_and_results_of_ones_own_reach_a_running_experiment(
    held: Any, call: Call, tmp_path: Path
) -> None:
    trials = [
        {"status": "SUCCEEDED", "parameters": {"x": 0.5}, "final": 2.0},
        {"status": "FAILED", "parameters": {"x": 0.1}, "final": None},
        {"status": "SUCCEEDED", "parameters": {"x": 7}, "final": 1.0},
    ]
    (tmp_path / "trials.json").write_text(json.dumps({"experiment": {}, "trials": trials}))
    called = call("import", "held", "--file", tmp_path / "trials.json")
    first, second = called.out.splitlines()
    assert (called.code, first) == (0, "imported 1 of 2 results into experiment held")
    assert second.startswith("left out: results[1]: ")
    of_nni = [{"parameter": {"x": 0.75}, "value": '{"default": 3.0}', "trialJobId": "AbCdE"}]
    (tmp_path / "of_nni.json").write_text(json.dumps(of_nni), encoding="utf-8-sig")  # as Windows tools write
    assert call("import", "held", "--file", tmp_path / "of_nni.json").code == 0
    payloads = [
        json.loads(payload) for (payload,) in held.rows("SELECT payload FROM commands WHERE code = 'FD'")
    ]
    assert [one["parameter"] for payload in payloads for one in payload] == [{"x": 0.5}, {"x": 0.75}]
    assert payloads[1][0]["value"] == {"default": 3.0}

    assert call("trial", "add", "held", "--like", "77").code == 1
    added = call("trial", "add", "held", "--parameters", '{"x": 7}', "--anyway")
    assert added.code == 0, added.err
    again = call("trial", "add", "held", "--like", "0")
    assert again.code == 0, again.err
    held.release()
    assert held.finish().code == 0
    records = [
        json.loads(record) for (record,) in held.rows("SELECT record FROM trials ORDER BY sequence_id")
    ]
    assert len(records) == 3
    assert records[1]["parameters"] == {"x": 7}
    assert records[2]["parameters"] == records[0]["parameters"]


def test_what_only_a_running_experiment_takes_is_refused_by_name(
    call: Call, stored: Storing, tmp_path: Path
) -> None:
    stored().write("over", [])
    (tmp_path / "results.json").write_text("[]")
    called = call("trial", "add", "over", "--parameters", "{}")
    assert called.code == 1
    assert "experiment over does not run" in called.err
    for torn in ("[{", "[" * 100_000):
        (tmp_path / "torn.json").write_text(torn)
        assert "is not JSON" in call("import", "over", "--file", tmp_path / "torn.json").err
    without_option = call("import", tmp_path / "results.json")
    assert (without_option.code, without_option.out) == (2, "")
    assert "results.json is a file: results are imported with --file" in without_option.err
