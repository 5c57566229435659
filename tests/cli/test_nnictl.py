"""nnictl's command lines: those with an equivalent mean it, others are left alone or refused by name."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from pitchpipe.cli.app import LazyGroup, pitchpipe
from pitchpipe.cli.failures import Failure
from pitchpipe.cli.nnictl import REPLACED, WITHOUT_EQUIVALENT, translated
from pitchpipe.cli.nnictl_script import help_lines, main, of_nnictl
from pitchpipe.runner.changes import MetricRow

LINES = {
    "create --config e.yml": "create e.yml",
    "create -c e.yml -p 8080 --debug": "create e.yml",
    "create --config=e.yml --foreground": "run e.yml",
    "create -f -c e.yml": "run e.yml",
    "resume abc --port 8081 --foreground": "resume abc",
    "resume abc -e /data": "resume abc --dir /data",
    "view abc --port 8081": "ui abc --port 8081",
    "stop -a": "stop --all",
    "update concurrency abc -v 8": "update abc --trial-concurrency 8",
    "update trialnum --value=9": "update --max-trial-number 9",
    "update duration abc --value 2h": "update abc --max-experiment-duration 2h",
    "update searchspace abc -f s.json": "update abc --search-space s.json",
    "trial ls abc": "trials abc",
    "trial ls abc --head 5": "trials abc --status SUCCEEDED --sort highest --limit 5",
    "trial ls --tail=5 abc": "trials --status SUCCEEDED --sort lowest --limit 5 abc",
    "trial kill abc -T Xy3fA": "trial kill abc Xy3fA",
    "experiment list": "list --running",
    "experiment list --all": "list",
    "experiment show abc": "status abc",
    "experiment delete abc": "delete abc",
    "experiment export abc -t csv -f t.csv -i": "export abc --format csv --output t.csv",
    "experiment import abc -f r.json": "import abc -f r.json",
    "log trial abc -T Xy3fA": "trial log abc Xy3fA",
    "webui url": "ui",
    "-v": "--version",
}
# Lines that lack an equivalent because of a flag, or the lack of one.
REFUSED = (
    "experiment delete --all",
    "stop --port 8080",
    "stop -p=8080",
    "log trial abc",
    "log trial",
)
# All verbs of nnictl 3.0 with which nothing else can be meant.
VERBS = (
    *("experiment", "config", "log", "webui", "algo", "platform", "ss_gen", "hello", "package", "view"),
    *("jupyter-extension", "trainingservice"),
)


@pytest.mark.parametrize(("line", "ours"), LINES.items())
def test_a_line_of_nnictl_is_ours(line: str, ours: str) -> None:
    assert translated(line.split()) == ours.split()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "run e.yml --dir -c",
        "create e.yml --json",
        "resume abc --extend",
        "stop abc",
        "update abc --trial-concurrency 3",
        "trial kill 7",
        "trial show 7",
        "export -o f",
        "--help",
    ],
)
def test_our_own_lines_are_left_as_they_are(line: str) -> None:
    assert translated(line.split()) == line.split()


@pytest.mark.parametrize("line", [*REFUSED, *(f"{' '.join(words)} abc" for words in WITHOUT_EQUIVALENT)])
def test_what_has_no_equivalent_is_refused_with_what_to_do(line: str) -> None:
    with pytest.raises(Failure, match="has no equivalent: ") as refused:
        translated(line.split())
    assert refused.value.exit_code == 2


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
    page = (tree / "docs" / "nnictl.md").read_text()
    for words in (*REPLACED, *WITHOUT_EQUIVALENT):
        assert f"`nnictl {' '.join(words)}" in page


@pytest.mark.parametrize("line", [line for line in LINES.values() if line != "--version"])
def test_our_lines_parse(line: str) -> None:
    group: Any = pitchpipe
    words = line.split()
    while isinstance(group, LazyGroup):
        group = group.get_command(click.Context(group), words.pop(0))
    group.make_context("it", words)


def test_a_line_of_nnictl_runs(call: Callable[..., Any], stored: Callable[..., Any]) -> None:
    stored().write("abc", [])
    assert call("experiment", "list", "--all", "--json").out == call("list", "--json").out
    assert call("experiment", "list").out.startswith("there are no running experiments in ")
    refused = call("platform", "clean", "-c", "x")
    assert (refused.code, "pitchpipe stop --all" in refused.err) == (2, True)


@pytest.fixture
def two(stored: Callable[..., Any], trial_of: Callable[..., Any]) -> Any:
    """Two trials: one succeeded with a dict after an intermediate result, the other failed."""
    trials = [
        trial_of(0, "SUCCEEDED", {"lr": 0.1}, final={"default": 0.5, "loss": 2.0}),
        trial_of(1, "FAILED"),
    ]
    rows = [
        MetricRow(trials[0], 1, "PERIODICAL", 0, "0.25", 1.0),
        MetricRow(trials[0], 1, "FINAL", 0, '{"default": 0.5, "loss": 2.0}', 2.0),
    ]
    return stored().write("first", trials, rows)


Outcome = tuple[int, str, str]


@pytest.fixture
def nnictl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return a function that runs the script `nnictl` in this process: its exit code and what it printed."""

    def run(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["nnictl", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return run


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


def test_export_under_nnis_name_is_nnis(two: Any, tmp_path: Path, nnictl: Callable[..., Outcome]) -> None:
    file = tmp_path / "out"
    assert nnictl("experiment", "export", "first", "-f", file, "-i")[0] == 0
    (row,) = json.loads(file.read_text())
    assert (row["parameter"], json.loads(row["value"])) == ({"lr": 0.1}, {"default": 0.5, "loss": 2.0})
    assert [json.loads(value) for value in row["intermediate"]] == [0.25, {"default": 0.5, "loss": 2.0}]
    assert nnictl("experiment", "export", "--type", "csv", "-f", file)[0] == 0
    head, line = file.read_text().splitlines()
    assert (head, line.rpartition(",")[0]) == ("lr,default,loss,trialJobId", "0.1,0.5,2.0")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--version"], 0, "pitchpipe "),
        (["trial", "ls", "absent"], 2, "there is no experiment 'absent'"),
        (["experiment", "export", "first"], 2, "Missing option '--filename'"),
        (["hello"], 2, "nnictl's `hello` has no equivalent"),
        (["experiment", "frob"], 2, "nnictl has no `experiment frob`: `nnictl experiment` lists its verbs"),
        (["update", "--help"], 0, "nnictl update concurrency"),
        (["config", "show", "first"], 0, '"trialCommand": '),
        (["webui", "url"], 1, "no pages are served yet: `pitchpipe ui first` serves them until Ctrl-C"),
        (["trial", "ls", "--help"], 0, "Usage: nnictl trial ls"),
        (["trial", "ls", "-h"], 0, "Usage: nnictl trial ls"),
        (["create"], 2, "error: nnictl create needs a config: nnictl create --config FILE\n"),
        (["create", "--debug", "-p", "8080"], 2, "nnictl create --config FILE"),
        (["stop", "all"], 2, "write it as `nnictl stop --all`"),
        (["experiment", "list", "all"], 2, "write it as `nnictl experiment list --all`"),
        ([], 0, "nnictl experiment list "),
        (["trial"], 0, "nnictl trial kill "),
        (["stop", "--help"], 0, "Usage: pitchpipe stop"),
    ],
)
def test_other_lines_under_nnis_name(
    two: Any, nnictl: Callable[..., Outcome], words: list[str], code: int, text: str
) -> None:
    found, out, err = nnictl(*words)
    assert (found, text in out + err) == (code, True), out + err


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
