"""`replay_schedule`: the schedule of a population for a training of the user's own, from a folder or a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe import replay_schedule
from pitchpipe.cli.app import run
from pitchpipe.store import StoreError

from .stored import MadeExperiment, a_config, a_trial, results, scheduled

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "tuners" / "pbt.md"


def a_population(path: Path, status: str = "SUCCEEDED") -> Path:
    """Return the folder of two trials; the second changed its learning rate after four of its six results."""
    made = MadeExperiment(path, a_config(), "DONE")
    trials = [a_trial(n, status, value=None if status != "SUCCEEDED" else 1.0 - n) for n in range(2)]
    for trial in trials:
        results(trial, [0.5] * 6)
    steps = [{"first": first, "parameters": {"lr": lr}} for first, lr in ((0, 0.9), (4, 0.1))]
    scheduled(trials[1], *steps)
    made.commit(*trials)
    made.store.close()
    return path


def rates(source: Path, trial: int | str | None = None) -> list[float]:
    schedule = replay_schedule(source, trial)
    return [schedule.parameters_at(epoch)["lr"] for epoch in range(schedule.results)]


def test_schedule_is_that_of_the_best_trial_or_of_another(tmp_path: Path) -> None:
    folder = a_population(tmp_path / "pop")
    assert rates(folder) == rates(folder, 1) == rates(folder, "T0001") == [0.9] * 4 + [0.1] * 2
    assert rates(folder, 0) == [0.0] * 6


def test_file_that_the_command_line_writes_has_the_same_schedule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = a_population(tmp_path / "pop"), tmp_path / "schedule.json"
    assert run(["trial", "show", str(folder), "1", "--schedule", "--json"]) == 0
    file.write_text(capsys.readouterr().out)
    assert rates(file) == rates(folder)
    assert replay_schedule(file).steps == replay_schedule(folder).steps
    with pytest.raises(ValueError, match="has the schedule of one trial: leave out trial=1"):
        replay_schedule(file, 1)


STEP = {"begin": 0, "parameters": {"lr": 1}}


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        {"steps": []},
        {"sequence_id": 1, "results": 6, "steps": []},
        {"sequence_id": 1, "results": 6, "steps": [{"begin": 1, "parameters": {}}]},
        {"sequence_id": 1, "results": 6, "steps": [STEP, STEP]},
        {"sequence_id": 1, "results": 6, "steps": [{"begin": 0, "parameters": 7}]},
        {"sequence_id": 1, "results": 6, "steps": [{"begin": "0", "parameters": {}}]},
        {"sequence_id": 1, "results": 6, "steps": ["0"]},
    ],
)
def test_file_with_anything_else_is_refused(data: Any, tmp_path: Path) -> None:
    file = tmp_path / "schedule.json"
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    how = "pitchpipe trial show ID TRIAL --schedule --json > FILE writes one"
    with pytest.raises(ValueError, match=re.escape(f"{file} has no schedule: {how} (")):
        replay_schedule(file)


def test_what_has_no_schedule_is_said(tmp_path: Path) -> None:
    plain = MadeExperiment(tmp_path / "plain", a_config(), "DONE")
    plain.commit(a_trial(0, value=0.5))
    plain.store.close()
    with pytest.raises(LookupError, match="no trial of experiment plain has a schedule"):
        replay_schedule(tmp_path / "plain")
    failed = a_population(tmp_path / "failed", "FAILED")
    with pytest.raises(LookupError, match="no trial of experiment failed has succeeded: name one by trial="):
        replay_schedule(failed)
    assert rates(failed, 1) == [0.9] * 4 + [0.1] * 2
    with pytest.raises(LookupError, match="there is no trial '7'"):
        replay_schedule(failed, 7)
    with pytest.raises(FileNotFoundError):
        replay_schedule(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="empty"):
        replay_schedule(tmp_path / "empty")


@pytest.mark.slow
def test_training_on_the_page_about_pbt_reaches_the_best_result_again(
    tmp_path: Path, by_hand: Callable[..., str]
) -> None:
    (example,) = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "script.py").write_text(example)
    results, steps, is_equal = by_hand(tmp_path / "script.py").splitlines()[-1].split()
    assert (results, is_equal) == ("20", "True")
    assert int(steps) > 1
