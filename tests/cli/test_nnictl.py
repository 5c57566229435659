"""nnictl's command lines: those with an equivalent mean it, others are left alone or refused by name."""

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import click
import pytest

from pitchpipe.cli.app import LazyGroup, pitchpipe
from pitchpipe.compat.nni.nnictl_script import help_lines, of_nnictl
from pitchpipe.compat.nni.nnictl_words import REPLACED, WITHOUT_EQUIVALENT
from pitchpipe.runner.effects import MetricRow
from pitchpipe.store import ExperimentFolder

from .conftest import Call, Storing, call_nnictl, make_trial

# All verbs of nnictl 3.0 with which nothing else can be meant.
VERBS = (
    *("experiment", "config", "log", "webui", "algo", "platform", "ss_gen", "hello", "package", "view"),
    *("jupyter-extension", "trainingservice", "tensorboard"),
)


def test_every_verb_of_nnictl_is_known() -> None:
    assert {words[0] for words in (*REPLACED, *WITHOUT_EQUIVALENT)} >= set(VERBS)


def test_every_replacement_is_a_verb_of_ours() -> None:
    for ours in REPLACED.values():
        group: Any = pitchpipe
        for word in ours:
            assert isinstance(group, LazyGroup)
            group = group.get_command(click.Context(group), word)
            assert group is not None, ours


def test_the_page_has_every_line(tree: Path) -> None:
    page = (tree / "docs" / "reference" / "nnictl.md").read_text()
    for words in (*REPLACED, *WITHOUT_EQUIVALENT):
        assert f"`nnictl {' '.join(words)}" in page


def test_a_line_of_nnictl_runs(call: Call, stored: Storing) -> None:
    stored().write("abc", [])
    assert call("experiment", "list", "--all", "--json").out == call("list", "--json").out
    assert call("experiment", "list").out.startswith("there are no running experiments in ")
    refused = call("platform", "clean", "-c", "x")
    assert (refused.code, "pitchpipe stop --all" in refused.err) == (2, True)


@pytest.fixture
def two(stored: Storing) -> Any:
    """Two trials: one succeeded with a dict after an intermediate result, the other failed."""
    trials = [
        make_trial(0, "SUCCEEDED", {"lr": 0.1}, final={"default": 0.5, "loss": 2.0}),
        make_trial(1, "FAILED"),
    ]
    rows = [
        MetricRow(trials[0], 1, "PERIODICAL", 0, "0.25", 1.0),
        MetricRow(trials[0], 1, "FINAL", 0, '{"default": 0.5, "loss": 2.0}', 2.0),
    ]
    return stored().write("first", trials, rows)


Outcome = tuple[int, str, str]


@pytest.fixture
def nnictl(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return a function that runs the script `nnictl` in this process: its exit code and what it printed."""
    return lambda *words: astuple(call_nnictl(capsys, *words))


def test_script_is_installed(two: Any, directory: Path) -> None:
    script = Path(sys.executable).with_name("nnictl")
    assert len(json.loads(subprocess.check_output([script, "trial", "ls", "first"]))) == 2


def test_trials_under_nnis_name_are_nnis_json(two: Any, nnictl: Callable[..., Outcome]) -> None:
    code, out, err = nnictl("trial", "ls", "first")
    first, second = json.loads(out)
    assert (code, err) == (0, "")
    assert (first["status"], first["sequenceId"], second["status"]) == ("SUCCEEDED", 0, "FAILED")
    assert json.loads(first["hyperParameters"][0])["parameters"] == {"lr": 0.1}
    (final,) = first["finalMetricData"]
    assert json.loads(json.loads(final["data"])) == {"default": 0.5, "loss": 2.0}
    assert "finalMetricData" not in second
    assert [job["sequenceId"] for job in json.loads(nnictl("trial", "ls", "--head", "3")[1])] == [0]


def test_experiment_under_nnis_name_is_nnis_json(stored: Storing, nnictl: Callable[..., Outcome]) -> None:
    made = stored(status="ERROR", created=0.0).write("abc", [])
    shown = json.loads(nnictl("experiment", "show", "abc")[1])
    assert (shown["id"], shown["params"]["trialCommand"]) == ("abc", "sh trial.sh")
    assert time.mktime(time.strptime(shown["startTime"], "%Y/%m/%d %H:%M:%S")) == 0
    status = json.loads(nnictl("experiment", "status", made.path)[1])
    assert (status["status"], len(status["errors"])) == ("ERROR", 1)


def test_export_under_nnis_name_is_nnis(two: Any, tmp_path: Path, nnictl: Callable[..., Outcome]) -> None:
    file = tmp_path / "out"
    assert nnictl("experiment", "export", "first", "-f", file, "-i")[0] == 0
    (row,) = json.loads(file.read_text())
    assert (row["parameter"], json.loads(row["value"])) == ({"lr": 0.1}, {"default": 0.5, "loss": 2.0})
    assert [json.loads(value) for value in row["intermediate"]] == [0.25, {"default": 0.5, "loss": 2.0}]
    assert nnictl("experiment", "export", "--type", "csv", "-f", file)[0] == 0
    head, line = file.read_text().splitlines()
    assert (head, line.rpartition(",")[0]) == ("lr,default,loss,trialJobId", "0.1,0.5,2.0")
    assert nnictl("experiment", "export", "--type", "csv", "-f", file, "-i")[0] == 0
    (cells,) = csv.DictReader(file.read_text().splitlines())
    assert json.loads(cells["intermediate"]) == [0.25, {"default": 0.5, "loss": 2.0}]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("--version", "pitchpipe "),
        ("trial ls --help", "Usage: nnictl trial ls"),
        ("trial ls -h", "Usage: nnictl trial ls"),
        ("stop --help", "Usage: nnictl stop"),
    ],
)
def test_help_under_nnis_name(nnictl: Callable[..., Outcome], line: str, text: str) -> None:
    code, out, _ = nnictl(*line.split())
    assert (code, out.startswith(text)) == (0, True), out


def test_config_names_the_directory_in_which_the_experiment_is(
    two: Any, directory: Path, nnictl: Callable[..., Outcome]
) -> None:
    shown = json.loads(nnictl("config", "show", "first")[1])
    assert shown["experimentWorkingDirectory"] == str(directory)


def test_help_has_every_verb_with_what_to_do() -> None:
    lines = list(help_lines())
    for words in (*REPLACED, *(set(WITHOUT_EQUIVALENT) - {("algo",)}), ("create",), ("algo", "register")):
        assert [line for line in lines if line.startswith(f"nnictl {' '.join(words)} ")], words
    assert all(line.startswith("nnictl trial ") for line in help_lines("trial"))
    assert not list(help_lines("stop"))


def test_resume_under_nnis_name_is_in_the_background() -> None:
    assert of_nnictl(["resume", "abc", "-p", "8080"]) == ["resume", "abc", "-p", "8080", "--detach"]
    assert of_nnictl(["resume", "abc", "--foreground"]) == ["resume", "abc", "--foreground"]
    assert of_nnictl(["stop", "abc"]) == ["stop", "abc"]


@pytest.mark.parametrize(
    ("limit", "low", "high"), [("trialnum", "1", "20"), ("duration", "12s", "1h")], ids=["trials", "time"]
)
def test_higher_limit_under_nnis_name_continues_what_is_done(
    stored: Storing,
    nnictl: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    low: str,
    high: str,
) -> None:
    continued: list[str] = []

    def run_in_background(folder: ExperimentFolder, *_: object, **__: object) -> int:
        continued.append(folder.experiment_id)
        return 0

    monkeypatch.setattr("pitchpipe.cli.verbs.create.run_in_background", run_in_background)
    more = {"trialCommand": "true", "trialCodeDirectory": "/"}
    for status in ("DONE", "STOPPED"):
        stored(status=status, more=more).write(status.lower(), [make_trial(0, "SUCCEEDED", final=0.5)])
    before = nnictl("experiment", "show", "done")
    assert nnictl("update", limit, "done", "--value", low)[0] != 0
    assert (nnictl("experiment", "show", "done"), continued) == (before, [])
    for name in ("stopped", "done"):
        assert nnictl("update", limit, name, "--value", high)[0] == 0
    assert continued == ["done"]
    params = json.loads(nnictl("experiment", "show", "done")[1])["params"]
    assert {
        "trialnum": params["maxTrialNumber"] == 20,
        "duration": params.get("maxExperimentDuration") == 3600,
    }[limit]


@pytest.mark.parametrize(
    ("line", "flag", "others"),
    [
        ("update concurrency abc -v x", "-v", "--trial-concurrency"),
        ("update trialnum abc --value x", "--value", "--max-trial-number"),
        ("update trialnum abc --value=x", "--value", "--max-trial-number"),
        ("update duration abc -v x", "-v", "--max-experiment-duration"),
        ("update searchspace abc -f .", "-f", "--search-space"),
        ("experiment import abc --filename .", "--filename", "--file'"),
        ("experiment import abc -f .", "-f", "--file"),
        ("experiment delete abc --nope", "--nope", "pitchpipe delete"),
        ("top abc --time x", "--time", "--every"),
        ("resume abc -e /etc/hosts", "-e", "--dir"),
    ],
)
def test_problem_is_one_of_the_flag_that_was_written(
    stored: Storing, nnictl: Callable[..., Outcome], line: str, flag: str, others: str
) -> None:
    stored().write("abc", [])
    code, _, err = nnictl(*line.split())
    assert (code, flag in err, others in err, "Usage: pitchpipe" in err) == (2, True, False, False), err


@pytest.mark.parametrize(
    "line",
    [
        "update concurrency",
        "update trialnum abc",
        "update duration",
        "update searchspace",
        "experiment import",
    ],
)
def test_line_without_its_value_names_the_flag(nnictl: Callable[..., Outcome], line: str) -> None:
    code, _, err = nnictl(*line.split())
    assert (code, f"nnictl {line.removesuffix(' abc')} ID --" in err) == (2, True), err
    assert nnictl(*line.split(), "--help")[0] == 0
